// Command controlplane is a Kubernetes control plane in one program: its first argument selects etcd, kube-apiserver or
// kube-controller-manager, whose flags follow.
//
// It is a module of its own, so that mcompress does not depend on Kubernetes. k8s.io/kubernetes replaces its staging
// modules by folders that its zip file lacks; go.mod replaces each by its published version instead, v0.N of v1.N.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	name := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-controller-manager FLAGS")
	os.Exit(2)
}
