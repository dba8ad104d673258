package golden

import (
	"fmt"

	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddressMeta is the metadata of the object of one Service address.
func AddressMeta(address, family string) metav1.ObjectMeta {
	m := meta("", address)
	m.Labels = map[string]string{
		"ipaddress.kubernetes.io/ip-family":  family,
		"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
	}
	return m
}

// CIDRMeta is the metadata of the range that the flags of the apiserver give.
func CIDRMeta() metav1.ObjectMeta {
	m := meta("", "kubernetes")
	m.Finalizers = []string{"networking.k8s.io/service-cidr-finalizer"}
	return m
}

// Ready is what the controller says of a range that is in use.
func Ready() []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: born,
		Message: "Kubernetes Service CIDR is ready"}}
}

// Addresses have each their family and the Service that holds them; %s stands for the version.
var Addresses = []struct{ File, Address, Family, Namespace, Service string }{
	{"ip_address_%s_ipv4", "10.96.0.20", "IPv4", "default", "web"},
	{"ip_address_%s_ipv6", "fd00:10:96::14", "IPv6", "default", "web"},
}

// CIDRs are those of the one ServiceCIDR.
var CIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112"}

func beta() []Object {
	var objects []Object
	for _, a := range Addresses {
		objects = append(objects, Object{fmt.Sprintf(a.File, "v1beta1"), networkingv1beta1.SchemeGroupVersion,
			&networkingv1beta1.IPAddress{
				ObjectMeta: AddressMeta(a.Address, a.Family),
				Spec: networkingv1beta1.IPAddressSpec{ParentRef: &networkingv1beta1.ParentReference{
					Resource: "services", Namespace: a.Namespace, Name: a.Service}},
			}})
	}
	return append(objects, Object{"service_cidr_v1beta1", networkingv1beta1.SchemeGroupVersion,
		&networkingv1beta1.ServiceCIDR{
			ObjectMeta: CIDRMeta(),
			Spec:       networkingv1beta1.ServiceCIDRSpec{CIDRs: CIDRs},
			Status:     networkingv1beta1.ServiceCIDRStatus{Conditions: Ready()},
		}})
}
