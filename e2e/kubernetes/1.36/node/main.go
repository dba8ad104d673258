// What a node and its control plane run beside kube-apiserver, kubectl and helm, in one program: the name it is called by
// says which. One program is linked once; its parts are those that Kubernetes and Helm build alone.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	helm "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	daemons := map[string]func() *cobra.Command{
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-proxy":              proxy.NewProxyCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
	name := filepath.Base(os.Args[0])
	if daemon, known := daemons[name]; known {
		os.Exit(cli.Run(daemon()))
	}
	switch name {
	case "kubectl":
		util.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
	case "helm":
		command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
		if err == nil {
			err = command.Execute()
		}
		if err != nil {
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "%s: call it kube-controller-manager, kube-proxy, kube-scheduler, kubelet, kubectl or helm\n", name)
		os.Exit(2)
	}
}
