package api

import "time"

// Backtest is the input of backtest. The result is a backtest.Report.
type Backtest struct {
	Mode    string            `json:"mode,omitempty" jsonschema:"the mode of the permission check to try; by default that of the settings"`
	Rules   string            `json:"rules,omitempty" jsonschema:"YAML with the key permit: rules and guards that replace those of the settings"`
	Since   time.Time         `json:"since,omitzero" jsonschema:"only messages since then; by default since 7 days ago"`
	Session string            `json:"session,omitempty" jsonschema:"only this session and its subagents"`
	Label   map[string]string `json:"label,omitempty" jsonschema:"only sessions with these labels"`
	Limit   int               `json:"limit,omitempty" minimum:"1" maximum:"10000" jsonschema:"the maximum number of differences; by default 1000"`
}
