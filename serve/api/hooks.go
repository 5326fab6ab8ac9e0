package api

import (
	"time"

	"github.com/belay-run/belay/hook"
)

// HookLine is one hook in a listing.
type HookLine struct {
	ID     string      `json:"id"`
	Phase  string      `json:"phase"`
	Kind   string      `json:"kind"`
	Origin hook.Origin `json:"origin"`
	// Agent is the agent that declares the hook. The hook runs only in its turns.
	Agent string `json:"agent,omitempty"`
	// State is on, shadow, off, closed or limited.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Warnings are problems that do not stop the hook from loading.
	Warnings []string `json:"warnings,omitempty"`

	// Match says which inputs the hook gets. Fails is the failure mode.
	Match string `json:"match,omitempty"`
	Fails string `json:"fails,omitempty"`
}

// HookList lists the hooks of the project.
type HookList struct {
	Hooks []HookLine `json:"hooks"`
}

// PlanHooks is the input of planHooks and hookGraph.
type PlanHooks struct {
	Phase string `json:"phase,omitempty" in:"query" jsonschema:"the phase; by default all phases that have hooks"`
	Agent string `json:"agent,omitempty" in:"query" jsonschema:"show the turns of this declared agent, with its own hooks"`
}

// PlanEntry is one hook in a plan.
type PlanEntry struct {
	Position     int         `json:"position" jsonschema:"counted from 1"`
	ID           string      `json:"id"`
	Name         string      `json:"name,omitempty"`
	Priority     int         `json:"priority"`
	After        []string    `json:"after,omitempty" jsonschema:"the hooks directly before it"`
	Stage        int         `json:"stage" jsonschema:"hooks of one stage run together"`
	Runs         string      `json:"runs" jsonschema:"inline, overlapping, detached or queued"`
	Execution    string      `json:"execution"`
	Timeout      string      `json:"timeout,omitempty"`
	Failure      string      `json:"failure"`
	Match        string      `json:"match,omitempty"`
	Capabilities []string    `json:"capabilities"`
	Rewrites     bool        `json:"rewrites,omitempty"`
	Shadow       bool        `json:"shadow,omitempty"`
	Origin       hook.Origin `json:"origin"`
	Why          string      `json:"why" jsonschema:"the reason for the position"`
}

// Plan is the order of the hooks of a phase.
type Plan struct {
	Phase    string      `json:"phase"`
	Kind     string      `json:"kind"`
	Entries  []PlanEntry `json:"entries"`
	Disabled []string    `json:"disabled,omitempty"`
	Agent    string      `json:"agent,omitempty"`
	Own      []string    `json:"own,omitempty" jsonschema:"the hooks that the agent itself declares"`
	OfAgents []HookLine  `json:"of_agents,omitempty" jsonschema:"hooks that run only in the turns of the agents that declare them"`
}

// PlanList has the order of the hooks of each phase.
type PlanList struct {
	Plans []Plan `json:"plans"`
}

// Graph is the order of the hooks as nodes and edges.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one hook of a [Graph].
type GraphNode struct {
	ID    string `json:"id" jsonschema:"the phase, a space and the id of the hook"`
	Phase string `json:"phase"`
	Hook  string `json:"hook"`
	Stage int    `json:"stage"`
	State string `json:"state" jsonschema:"on or off"`
}

// GraphEdge says that one hook runs before another.
type GraphEdge struct {
	From string `json:"from" jsonschema:"this hook runs before the other"`
	To   string `json:"to"`
}

// Trust says whether a person has trusted a directory of hooks.
type Trust struct {
	// Dir is the directory. Origin is project or space.
	Dir    string `json:"dir"`
	Origin string `json:"origin"`
	Space  string `json:"space,omitempty"`
	// State is unchanged, changed, has mistakes or directory missing. A changed directory is
	// no longer trusted.
	State  string    `json:"state"`
	Grants []string  `json:"grants,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// TrustList lists the trusted directories.
type TrustList struct {
	Directories []Trust `json:"directories"`
}
