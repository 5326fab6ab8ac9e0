package api

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// Skill is one skill in a listing.
type Skill struct {
	Name        string   `json:"name"`
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	Hidden      bool     `json:"hidden,omitempty"`
	Triggers    int      `json:"triggers,omitempty"`
	Sections    []string `json:"sections,omitempty"`
	Agents      []string `json:"agents,omitempty"`
	Path        string   `json:"path"`
}

// SkillList lists the skills.
type SkillList struct {
	Skills []Skill `json:"skills"`
}

// Agent is one declared agent in a listing.
type Agent struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"`
	Skills      []string `json:"skills"`
	Mode        string   `json:"mode,omitempty"`
	Path        string   `json:"path"`
	Space       string   `json:"space,omitempty"`
	Mistakes    []string `json:"mistakes,omitempty"`
}

// AgentList lists the declared agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
}

// Models are the providers and their models.
type Models struct {
	// Model is the model that tasks use by default, or "".
	Model string `json:"model"`
	// Problem says why a task cannot run.
	Problem   string     `json:"problem,omitempty"`
	Providers []Provider `json:"providers"`

	// Object and Data list the agents in the form of OpenAI's models.
	Object string        `json:"object" jsonschema:"always list"`
	Data   []OpenAIModel `json:"data" jsonschema:"the agents, for clients of OpenAI"`
}

// OpenAIModel is an agent in the form of OpenAI's models.
type OpenAIModel struct {
	ID      string `json:"id" jsonschema:"the name of an agent, for the field model of the OpenAI endpoints"`
	Object  string `json:"object" jsonschema:"always model"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// Provider is a provider with its models.
type Provider struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"`
	// Status is ok, missing (no key), note (unknown whether the server runs) or broken.
	Status string `json:"status"`
	// Detail is the result in words. Remedy says what to do.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
	// Key is the masked key. KeyFrom is where the key was found.
	Key      string `json:"key,omitempty"`
	KeyFrom  string `json:"key_from,omitempty"`
	NeedsKey bool   `json:"needs_key"`
	// Reachable says whether the provider answered. It is nil without --check.
	Reachable *bool             `json:"reachable,omitempty"`
	Models    []belay.ModelInfo `json:"models,omitempty"`
}

// Workload is what the processes of a store do, and what waits.
type Workload struct {
	Turns belay.Load      `json:"turns"`
	Jobs  hook.QueueStats `json:"jobs"`
}

// ReadUsage is the input of readUsage.
type ReadUsage struct {
	Label map[string]string `json:"label,omitempty" in:"query" jsonschema:"only sessions with this label, as NAME=VALUE; may be repeated"`
	Since time.Time         `json:"since,omitzero" in:"query" jsonschema:"only responses of this day or later, in UTC"`
	Until time.Time         `json:"until,omitzero" in:"query" jsonschema:"only responses of days before this time, in UTC"`
	By    string            `json:"by,omitempty" in:"query" pattern:"^(day|agent|model|label:.+)$" jsonschema:"also add up by day, agent, model or label:NAME"`
}

// Usage is what sessions have used.
type Usage struct {
	Sessions int         `json:"sessions"`
	Turns    int         `json:"turns"`
	Usage    belay.Usage `json:"usage"`
	// Agents is the usage by agent.
	Agents map[string]belay.Usage `json:"agents" jsonschema:"by agent"`
	// Rows are the parts that the request asks for, sorted by Key.
	Rows []UsageRow `json:"rows,omitempty" jsonschema:"the parts by day, agent, model or label, sorted by key"`
}

// UsageRow is the usage of one day, agent, model or value of a label.
type UsageRow struct {
	Key      string      `json:"key" jsonschema:"the day as YYYY-MM-DD in UTC, the agent, the model or the value of the label; empty for sessions without the label"`
	Usage    belay.Usage `json:"usage"`
	Turns    int         `json:"turns"`
	Sessions int         `json:"sessions"`
}

// Self describes the token of a request.
type Self struct {
	Name   string            `json:"name"`
	Roles  []string          `json:"roles"`
	Labels map[string]string `json:"labels,omitempty"`
}
