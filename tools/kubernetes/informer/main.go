// Command informer is a foreign client for the tests: client-go's shared informers and its dynamic client, told what to do line
// by line on standard input.
//
//	informer -kubeconfig FILE -namespace NAMESPACE
//
// It watches the namespace's BareMetalHosts (dynamic client, JSON) and Secrets (typed client, which prefers protobuf), and prints
// one JSON document a line: what the informers saw, as {"saw": "added", "kind": ..., "name": ..., "version": ...}, and the outcome
// of each command, as {"did": ..., ...} or {"did": ..., "error": ...}. Commands: create NAME, pages SIZE, patch NAME, apply NAME,
// status NAME, update NAME, delete NAME, store. It ends with its standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

var hostResource = schema.GroupVersionResource{Group: "metal3.io", Version: "v1alpha1", Resource: "baremetalhosts"}

// printer keeps the lines of several goroutines apart.
type printer struct {
	sync.Mutex
	encoder *json.Encoder
}

func (p *printer) print(document map[string]any) {
	p.Lock()
	defer p.Unlock()
	if problem := p.encoder.Encode(document); problem != nil {
		os.Exit(3) // nobody reads us any more
	}
}

// tell makes an informer's events lines of output.
func (p *printer) tell(kind string) cache.ResourceEventHandler {
	saw := func(what string, object any) {
		if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
			object = gone.Obj
		}
		about, problem := meta.Accessor(object)
		if problem != nil {
			panic(problem)
		}
		p.print(map[string]any{"saw": what, "kind": kind, "name": about.GetName(), "version": about.GetResourceVersion()})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { saw("added", object) },
		UpdateFunc: func(_, object any) { saw("updated", object) },
		DeleteFunc: func(object any) { saw("deleted", object) },
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API")
	namespace := flag.String("namespace", "default", "where to look and work")
	flag.Parse()
	config, problem := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if problem != nil {
		fmt.Fprintln(os.Stderr, problem)
		os.Exit(1)
	}
	config.QPS = -1
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed.ContentType = "application/vnd.kubernetes.protobuf"

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := &printer{encoder: json.NewEncoder(os.Stdout)}
	client := dynamic.NewForConfigOrDie(config)
	hosts := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, *namespace, nil)
	secrets := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(typed), 0, informers.WithNamespace(*namespace))
	hostInformer := hosts.ForResource(hostResource).Informer()
	secretInformer := secrets.Core().V1().Secrets().Informer()
	for kind, informer := range map[string]cache.SharedIndexInformer{"BareMetalHost": hostInformer, "Secret": secretInformer} {
		if _, problem := informer.AddEventHandler(out.tell(kind)); problem != nil {
			panic(problem)
		}
	}
	hosts.Start(ctx.Done())
	secrets.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), hostInformer.HasSynced, secretInformer.HasSynced) {
		os.Exit(1)
	}
	out.print(map[string]any{"did": "sync", "hosts": namesIn(hostInformer), "secrets": namesIn(secretInformer)})

	worker := worker{client.Resource(hostResource).Namespace(*namespace), hostInformer}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, argument, _ := strings.Cut(lines.Text(), " ")
		within, done := context.WithTimeout(ctx, time.Minute)
		answer, problem := worker.do(within, verb, argument)
		done()
		if problem != nil {
			answer = map[string]any{"error": problem.Error()}
		}
		answer["did"] = verb
		out.print(answer)
	}
}

type worker struct {
	hosts    dynamic.ResourceInterface
	informer cache.SharedIndexInformer
}

func (w worker) do(ctx context.Context, verb, argument string) (map[string]any, error) {
	switch verb {
	case "create":
		return shown(w.hosts.Create(ctx, host(argument, map[string]any{"online": false}), metav1.CreateOptions{}))
	case "pages":
		return w.pages(ctx, argument)
	case "patch":
		patch := []byte(`{"spec": {"online": true}}`)
		return shown(w.hosts.Patch(ctx, argument, types.MergePatchType, patch, metav1.PatchOptions{}))
	case "apply":
		wanted := host(argument, map[string]any{"online": true, "description": "applied"})
		return shown(w.hosts.Apply(ctx, argument, wanted, metav1.ApplyOptions{FieldManager: "informer", Force: true}))
	case "status":
		return w.change(ctx, argument, func(found *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			found.Object["status"] = map[string]any{
				"operationalStatus": "OK", "errorMessage": "", "errorCount": int64(0), "poweredOn": true,
				"provisioning": map[string]any{"ID": "", "state": "available", "image": map[string]any{"url": ""}},
			}
			return w.hosts.UpdateStatus(ctx, found, metav1.UpdateOptions{})
		})
	case "update":
		return w.change(ctx, argument, func(found *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			found.SetLabels(map[string]string{"rack": "a"})
			return w.hosts.Update(ctx, found, metav1.UpdateOptions{})
		})
	case "delete":
		found, problem := w.hosts.Get(ctx, argument, metav1.GetOptions{})
		if problem != nil {
			return nil, problem
		}
		uid := found.GetUID()
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
		return map[string]any{}, w.hosts.Delete(ctx, argument, options)
	case "store":
		return map[string]any{"names": namesIn(w.informer)}, nil
	}
	return nil, fmt.Errorf("there is no command %q", verb)
}

// pages lists in pages of the size asked for and says how many there were.
func (w worker) pages(ctx context.Context, size string) (map[string]any, error) {
	limit, problem := strconv.ParseInt(size, 10, 64)
	if problem != nil {
		return nil, problem
	}
	count, names := 0, []string{}
	reader := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		count++
		return w.hosts.List(ctx, options)
	})
	reader.PageSize = limit
	problem = reader.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		names = append(names, item.(*unstructured.Unstructured).GetName())
		return nil
	})
	return map[string]any{"pages": count, "names": names}, problem
}

// change reads and writes until nobody else wrote in between, as controllers do.
func (w worker) change(
	ctx context.Context, name string, write func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (answer map[string]any, problem error) {
	problem = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, problem := w.hosts.Get(ctx, name, metav1.GetOptions{})
		if problem != nil {
			return problem
		}
		answer, problem = shown(write(found))
		return problem
	})
	return answer, problem
}

func shown(object *unstructured.Unstructured, problem error) (map[string]any, error) {
	if problem != nil {
		return nil, problem
	}
	return map[string]any{"object": object.Object}, nil
}

func host(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func namesIn(informer cache.SharedIndexInformer) []string {
	names := []string{}
	for _, key := range informer.GetStore().ListKeys() {
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
