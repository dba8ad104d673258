package golden

import (
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// CIDRs are those of the one ServiceCIDR.
var CIDRs = []string{"10.96.0.0/16", "fd00:10:96::/112"}

func beta() []Object {
	return []Object{{"service_cidr_v1beta1", networkingv1beta1.SchemeGroupVersion,
		&networkingv1beta1.ServiceCIDR{
			ObjectMeta: CIDRMeta(),
			Spec:       networkingv1beta1.ServiceCIDRSpec{CIDRs: CIDRs},
			Status:     networkingv1beta1.ServiceCIDRStatus{Conditions: Ready()},
		}}}
}
