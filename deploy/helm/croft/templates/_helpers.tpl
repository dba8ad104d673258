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
