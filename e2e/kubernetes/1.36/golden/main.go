// golden writes what this version of Kubernetes stores; see ../../golden.
package main

import (
	networkingv1 "k8s.io/api/networking/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	golden "croft.example/kube-golden"
)

// The object of one range, of this version and not yet of 1.32.
func newer() golden.Object {
	return golden.Object{Name: "service_cidr_v1", Version: networkingv1.SchemeGroupVersion,
		Object: &networkingv1.ServiceCIDR{
			ObjectMeta: golden.CIDRMeta(),
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: golden.CIDRs},
			Status:     networkingv1.ServiceCIDRStatus{Conditions: golden.Ready()},
		}}
}

func main() {
	scheme := golden.Scheme()
	utilruntime.Must(networkingv1.AddToScheme(scheme))
	golden.Main(scheme, append(golden.Objects(), newer()))
}
