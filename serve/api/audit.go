package api

import "time"

// AskAudit is the input of askAudit.
type AskAudit struct {
	Question string            `json:"question" in:"path" required:"true" enum:"denials,slow,failures,approvals,grants,cost,tools,touched" jsonschema:"the question"`
	Since    time.Time         `json:"since,omitzero" in:"query" jsonschema:"only what happened since then; by default since 7 days ago"`
	Session  string            `json:"session,omitempty" in:"query" jsonschema:"only this session and its subagents; not for cost"`
	Label    map[string]string `json:"label,omitempty" in:"query" jsonschema:"only sessions with this label, as NAME=VALUE; may be repeated"`
	By       string            `json:"by,omitempty" in:"query" pattern:"^(day|agent|model|label:.+)$" jsonschema:"for cost: add up by day, agent, model or label:NAME; by default by agent"`
	Limit    int               `json:"limit,omitempty" in:"query" minimum:"1" maximum:"10000" jsonschema:"the maximum number of rows; by default 1000"`
}

// AuditReport is the answer to a question: a table.
type AuditReport struct {
	Columns []AuditColumn `json:"columns"`
	// Rows have one cell for each column.
	Rows [][]string `json:"rows" jsonschema:"each row has one cell for each column; durations are in seconds, times in the form of RFC 3339"`
	// Total is the number of rows without the limit.
	Total int `json:"total" jsonschema:"the number of rows without the limit"`
	// Empty says in words that there are no rows.
	Empty string `json:"empty,omitempty" jsonschema:"says in words that there are no rows"`
}

// AuditColumn is a column of an AuditReport.
type AuditColumn struct {
	Name string `json:"name"`
	Kind string `json:"kind" jsonschema:"text, count, dollars, seconds or time"`
}
