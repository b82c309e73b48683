// Command kubectl is the Kubernetes client, built from its published module for machines that have Go but no kubectl.
// `tools/setup` builds it once into the user's cache folder. Authentication plugins of cloud providers are left out: they start
// other programs, and nothing here needs them.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// CheckErr knows the exit codes that scripts rely on (kubectl diff: 1 for a difference, more for an error).
	if problem := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); problem != nil {
		util.CheckErr(problem)
	}
}
