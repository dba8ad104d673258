{{- define "croft.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
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

{{- define "croft.isFlannel" -}}
{{- if eq .Values.mainPlugin "flannel" }}true{{ end }}
{{- end }}

{{/* Calico's and flannel's own daemons write the condition of their nodes. */}}
{{- define "croft.clearsNetworkUnavailable" -}}
{{- $asked := .Values.agent.clearNetworkUnavailable -}}
{{- if kindIs "invalid" $asked -}}
{{- if has .Values.mainPlugin (list "ptp" "bridge") }}true{{ end }}
{{- else if $asked }}true{{ end }}
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
