// golden writes what this version of Kubernetes stores; see ../../golden.
package main

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	golden "croft.example/kube-golden"
)

// The objects of one address and one range, of this version and not yet of 1.32.
func newer() []golden.Object {
	var objects []golden.Object
	for _, a := range golden.Addresses {
		objects = append(objects, golden.Object{Name: fmt.Sprintf(a.File, "v1"), Version: networkingv1.SchemeGroupVersion,
			Object: &networkingv1.IPAddress{
				ObjectMeta: golden.AddressMeta(a.Address, a.Family),
				Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
					Resource: "services", Namespace: a.Namespace, Name: a.Service}},
			}})
	}
	return append(objects, golden.Object{Name: "service_cidr_v1", Version: networkingv1.SchemeGroupVersion,
		Object: &networkingv1.ServiceCIDR{
			ObjectMeta: golden.CIDRMeta(),
			Spec:       networkingv1.ServiceCIDRSpec{CIDRs: golden.CIDRs},
			Status:     networkingv1.ServiceCIDRStatus{Conditions: golden.Ready()},
		}})
}

func main() {
	scheme := golden.Scheme()
	utilruntime.Must(networkingv1.AddToScheme(scheme))
	golden.Main(scheme, append(golden.Objects(), newer()...))
}
