package golden

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var born = metav1.NewTime(time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC))

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: born,
		UID: types.UID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
	}
}

func port(name string, protocol corev1.Protocol, number, node int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name: name, Protocol: protocol, Port: number, TargetPort: intstr.FromInt32(number), NodePort: node,
	}
}

// A spec with what the apiserver's defaults fill in.
func spec(
	kind corev1.ServiceType, policy corev1.IPFamilyPolicy, addresses []string, ports ...corev1.ServicePort,
) corev1.ServiceSpec {
	s := corev1.ServiceSpec{
		Type: kind, Ports: ports, Selector: map[string]string{"app": "web"}, SessionAffinity: corev1.ServiceAffinityNone,
		ClusterIP: addresses[0], ClusterIPs: addresses, IPFamilyPolicy: &policy,
		IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}[:len(addresses)],
		InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
	}
	if kind == corev1.ServiceTypeNodePort || kind == corev1.ServiceTypeLoadBalancer {
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	return s
}

func service(name string, m metav1.ObjectMeta, s corev1.ServiceSpec) Object {
	return Object{"service_" + name, corev1.SchemeGroupVersion, &corev1.Service{ObjectMeta: m, Spec: s}}
}

func loadBalancer() Object {
	s := spec(corev1.ServiceTypeLoadBalancer, corev1.IPFamilyPolicySingleStack, []string{"10.96.0.40"},
		port("", corev1.ProtocolTCP, 443, 0))
	s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.HealthCheckNodePort = 30118
	s.AllocateLoadBalancerNodePorts = ptr.To(false)
	return service("load_balancer", meta("edge", "gateway"), s)
}

func leaving() Object {
	m := meta("edge", "leaving")
	m.DeletionTimestamp = ptr.To(metav1.NewTime(born.Add(time.Hour)))
	m.DeletionGracePeriodSeconds = ptr.To[int64](0)
	m.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
	s := spec(corev1.ServiceTypeLoadBalancer, corev1.IPFamilyPolicySingleStack, []string{"10.96.0.41"},
		port("", corev1.ProtocolTCP, 80, 30041))
	s.AllocateLoadBalancerNodePorts = ptr.To(true)
	return service("leaving", m, s)
}

// The Service of a release before dual stack: no list of addresses, no families.
func old() Object {
	return service("before_dual_stack", meta("default", "old"), corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.50", SessionAffinity: corev1.ServiceAffinityNone,
		Ports: []corev1.ServicePort{port("", corev1.ProtocolTCP, 80, 0)},
	})
}

// Much that Croft has no use for stands between what it reads.
func manyFields() Object {
	m := meta("shop", "front")
	m.GenerateName = "front-"
	m.Generation = 7
	m.Labels = map[string]string{"app": "front", "tier": "web"}
	m.Annotations = map[string]string{"example.com/note": "ünïcode, <tags> & \"quotes\"", "example.com/empty": ""}
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "example.com/v1", Kind: "Shop", Name: "front", UID: "7d444840-9dc0-11d1-b245-5ffdce74fad2",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	m.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &born,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:ports":{}}}`)}},
		{Manager: "cloud", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &born,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{}}`)}, Subresource: "status"},
	}
	s := spec(corev1.ServiceTypeLoadBalancer, corev1.IPFamilyPolicyRequireDualStack,
		[]string{"10.96.1.2", "fd00:10:96::102"},
		port("http", corev1.ProtocolTCP, 80, 30180), port("quic", corev1.ProtocolUDP, 443, 30443),
		port("https", corev1.ProtocolTCP, 443, 30443), port("sctp", corev1.ProtocolSCTP, 9999, 30999))
	s.Ports[0].AppProtocol = ptr.To("kubernetes.io/h2c")
	s.Ports[0].TargetPort = intstr.FromString("http")
	s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.HealthCheckNodePort = 32000
	s.AllocateLoadBalancerNodePorts = ptr.To(true)
	s.ExternalIPs = []string{"192.0.2.7"}
	s.LoadBalancerIP = "198.51.100.9"
	s.LoadBalancerSourceRanges = []string{"203.0.113.0/24"}
	s.LoadBalancerClass = ptr.To("example.com/anycast")
	s.PublishNotReadyAddresses = true
	s.SessionAffinity = corev1.ServiceAffinityClientIP
	s.SessionAffinityConfig = &corev1.SessionAffinityConfig{
		ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](600)},
	}
	s.TrafficDistribution = ptr.To("PreferClose")
	object := service("many_fields", m, s)
	object.Object.(*corev1.Service).Status = corev1.ServiceStatus{
		LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
			{IP: "198.51.100.9", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP),
				Ports: []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP, Error: ptr.To("Pending")}}},
			{Hostname: "front.example.com"},
		}},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 7,
			LastTransitionTime: born, Reason: "Provisioned", Message: "ready"}},
	}
	return object
}

func services() []Object {
	const cluster, one = corev1.ServiceTypeClusterIP, corev1.IPFamilyPolicySingleStack
	own := spec(cluster, one, []string{"10.96.0.1"}, port("https", corev1.ProtocolTCP, 443, 0))
	own.Selector = nil
	own.Ports[0].TargetPort = intstr.FromInt32(6443)
	return []Object{
		service("kubernetes", meta("default", "kubernetes"), own),
		service("dual_stack", meta("default", "web"), spec(cluster, corev1.IPFamilyPolicyPreferDualStack,
			[]string{"10.96.0.20", "fd00:10:96::14"}, port("", corev1.ProtocolTCP, 80, 0))),
		service("headless", meta("default", "peers"),
			spec(cluster, one, []string{corev1.ClusterIPNone}, port("", corev1.ProtocolTCP, 7000, 0))),
		service("node_port", meta("kube-system", "dns"), spec(corev1.ServiceTypeNodePort, one, []string{"10.96.0.30"},
			port("dns", corev1.ProtocolUDP, 53, 30053), port("dns-tcp", corev1.ProtocolTCP, 53, 30053))),
		loadBalancer(),
		service("external_name", meta("default", "elsewhere"), corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com", SessionAffinity: corev1.ServiceAffinityNone,
		}),
		leaving(),
		old(),
		manyFields(),
	}
}
