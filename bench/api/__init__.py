"""The embedded API and kube-apiserver with etcd under the same load: `bench_api` prints what this measures.

servers   start each of them, with TLS and our definitions
hosts     what is created and written: hosts that are 7 KB large after their inspection
load      the Go program in bench/load that asks, so that no Python client is what is measured
measure   the rows of the table
procfs    processor time and memory of processes
"""
