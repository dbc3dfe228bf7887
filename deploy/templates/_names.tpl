{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/component: operator
{{- end }}

{{- define "moorage.labels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
