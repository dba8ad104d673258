{{- define "croft.image" -}}
{{- $repository := required "image.repository: name Croft's image without its tag: as your nodes pull it, or localhost/croft where each node has loaded the archive (docs/kubernetes.md)" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "croft.labels" -}}
app.kubernetes.io/name: croft
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* How a container reaches the API server: its own variables, unless a value says otherwise. */}}
{{- define "croft.apiServer" -}}
{{- with .Values.apiServer.host }}
- {name: KUBERNETES_SERVICE_HOST, value: {{ . | quote }}}
{{- end }}
{{- with .Values.apiServer.port }}
- {name: KUBERNETES_SERVICE_PORT, value: {{ . | quote }}}
{{- end }}
{{- end }}

{{/* Of a container that needs no right of its own. */}}
{{- define "croft.unprivileged" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The part of a store's URL that says which of Calico's groups has the register. */}}
{{- define "croft.group" -}}
{{- with .Values.calicoGroup }}?group={{ . }}{{ end }}
{{- end }}

{{/* Whether the Job of the first pools is part of the release. */}}
{{- define "croft.makesPools" -}}
{{- if and .Values.defaultPools.enabled (not .Values.uninstall) (not (include "croft.isFlannel" .)) }}true{{ end }}
{{- end }}

{{- define "croft.isFlannel" -}}
{{- if eq .Values.mainPlugin "flannel" }}true{{ end }}
{{- end }}

{{/* Calico's and flannel's own daemons write the condition of their nodes. */}}
{{- define "croft.clearsNetworkUnavailable" -}}
{{- $asked := .Values.agent.clearNetworkUnavailable -}}
{{- if .Values.uninstall -}}
{{- else if kindIs "invalid" $asked -}}
{{- if has .Values.mainPlugin (list "ptp" "bridge") }}true{{ end }}
{{- else if $asked }}true{{ end }}
{{- end }}

{{/* "true" where two ranges of IPv4, {a, b}, have addresses in common: the network of the shorter prefix is that of both. */}}
{{- define "croft.v4Overlap" -}}
{{- $lengths := list (atoi (last (splitList "/" .a))) (atoi (last (splitList "/" .b))) -}}
{{- $size := 1 -}}
{{- range until (int (sub 32 (min (index $lengths 0) (index $lengths 1)))) -}}{{- $size = mul $size 2 -}}{{- end -}}
{{- $networks := list -}}
{{- range (list .a .b) -}}
{{- $address := 0 -}}
{{- range splitList "." (first (splitList "/" .)) -}}{{- $address = add (mul $address 256) (atoi .) -}}{{- end -}}
{{- $networks = append $networks (div $address $size) -}}
{{- end -}}
{{- if eq (index $networks 0) (index $networks 1) }}true{{ end }}
{{- end }}

{{/* The 128 bits of an address of IPv6, as text. */}}
{{- define "croft.v6Bits" -}}
{{- $halves := splitList "::" (lower (first (splitList "/" .))) -}}
{{- $groups := compact (splitList ":" (first $halves)) -}}
{{- $behind := list -}}
{{- if gt (len $halves) 1 -}}{{- $behind = compact (splitList ":" (last $halves)) -}}{{- end -}}
{{- range until (int (max 0 (sub (sub 8 (len $groups)) (len $behind)))) -}}{{- $groups = append $groups "0" -}}{{- end -}}
{{- $bits := dict "0" "0000" "1" "0001" "2" "0010" "3" "0011" "4" "0100" "5" "0101" "6" "0110" "7" "0111" "8" "1000" "9" "1001" "a" "1010" "b" "1011" "c" "1100" "d" "1101" "e" "1110" "f" "1111" -}}
{{- range concat $groups $behind -}}
{{- repeat (int (sub 4 (len .))) "0000" -}}
{{- range splitList "" . -}}{{- get $bits . -}}{{- end -}}
{{- end -}}
{{- end }}

{{/* The same of two ranges of IPv6: the bits of the shorter prefix are those of both. */}}
{{- define "croft.v6Overlap" -}}
{{- $length := int (min (atoi (last (splitList "/" .a))) (atoi (last (splitList "/" .b)))) -}}
{{- if eq (substr 0 $length (include "croft.v6Bits" .a)) (substr 0 $length (include "croft.v6Bits" .b)) }}true{{ end }}
{{- end }}

{{/* Node ranges are for what gets them from spec.podCIDRs; a pool and they can have no address in common. What is not said here, as
kubeadm's podSubnet of a family, can't be compared: whoever of controller and Job came first would keep the other out. */}}
{{- define "croft.checkNodeRanges" -}}
{{- if and .Values.controller.allocateNodeCidrs .Values.defaultPools.enabled (not (include "croft.isFlannel" .)) -}}
{{- range $cidr := splitList "," .Values.controller.clusterCidr -}}
{{- $is6 := contains ":" $cidr -}}
{{- $pool := ternary $.Values.defaultPools.ipv6Cidr $.Values.defaultPools.ipv4Cidr $is6 -}}
{{- if not $pool -}}
{{- fail (printf "controller.allocateNodeCidrs: under %s the pool would be kubeadm's podSubnet, which may be what node ranges are cut from: give defaultPools.%s (`none`: no pool), or defaultPools.enabled=false" $.Values.mainPlugin (ternary "ipv6Cidr" "ipv4Cidr" $is6)) -}}
{{- end -}}
{{- if ne $pool "none" -}}
{{- if include (ternary "croft.v6Overlap" "croft.v4Overlap" $is6) (dict "a" $pool "b" $cidr) -}}
{{- fail (printf "controller.allocateNodeCidrs: clusterCidr %s overlaps the pool %s (defaultPools): under %s pods get addresses of pools and need no node ranges: leave it out; routes between nodes go to blocks (docs/kubernetes.md)" $cidr $pool $.Values.mainPlugin) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The plugin's kubeconfig is for who asks the register: all but host-local, which keeps files on the node. */}}
{{- define "croft.hasKubeconfig" -}}
{{- if or (not (include "croft.isFlannel" .)) (without (default list .Values.install.alsoAs) "host-local") }}true{{ end }}
{{- end }}

{{/* A directory of the node, {name, path}. What the schema refuses too, which helm can be told to pass over. */}}
{{- define "croft.directory" -}}
{{- $path := required (printf "%s: give an absolute path" .name) .path -}}
{{- if or (ne $path (clean $path)) (not (isAbs $path)) (eq $path "/") -}}
{{- fail (printf "%s: %q is not an absolute path without \"//\", \"/.\", \"/..\" and \"/\" at its end" .name $path) -}}
{{- end -}}
{{ $path }}
{{- end }}

{{- define "croft.binDir" -}}
{{ include "croft.directory" (dict "name" "install.cniBinDir" "path" .Values.install.cniBinDir) }}
{{- end }}

{{- define "croft.confDir" -}}
{{ include "croft.directory" (dict "name" "install.cniConfDir" "path" .Values.install.cniConfDir) }}
{{- end }}
