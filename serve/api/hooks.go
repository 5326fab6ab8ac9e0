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
	// Untrusted says that the hook does not run as declared because its directory is not
	// trusted, or has changed since it was trusted.
	Untrusted bool `json:"untrusted,omitempty" jsonschema:"it does not run as declared, because its directory is not trusted or has changed"`
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
	// State is as in HookLine, or quarantined.
	State string `json:"state" jsonschema:"on, shadow, off, closed (an untrusted gate that denies everything), limited (it lacks grants) or quarantined (too many of its runs do not stop)"`
	// Untrusted says that the hook's directory is not trusted, or has changed.
	Untrusted bool        `json:"untrusted,omitempty" jsonschema:"its directory is not trusted, or has changed since"`
	Origin    hook.Origin `json:"origin"`
	// Why is the reason for the state, or for the position.
	Why string `json:"why,omitempty" jsonschema:"the reason for the state; for a hook that is on, the reason for its position"`
}

// GraphEdge says that one hook runs before another.
type GraphEdge struct {
	From string `json:"from" jsonschema:"this hook runs before the other"`
	To   string `json:"to"`
}

// HookStats is the input of hookStats.
type HookStats struct {
	Since time.Time `json:"since,omitzero" in:"query" jsonschema:"only runs that started at this time or later; by default those of the last 24 hours"`
	Limit int       `json:"limit" in:"query" minimum:"1" maximum:"200000" default:"20000" jsonschema:"the maximum number of records to read, the newest first"`
}

// HookStatList has statistics of hooks.
type HookStatList struct {
	Hooks []HookStat `json:"hooks"`
	// Since is the time of the first record that counts.
	Since   time.Time `json:"since" jsonschema:"the time from which on records count"`
	Records int       `json:"records" jsonschema:"how many records were read"`
	// Truncated says that there are more records than the limit. Since is then the time of the
	// oldest record that was read.
	Truncated bool `json:"truncated,omitempty" jsonschema:"there are more records than the limit: only the newest count"`
}

// HookStat has the statistics of one hook at one phase.
type HookStat struct {
	Hook     string `json:"hook"`
	Phase    string `json:"phase"`
	Runs     int    `json:"runs" jsonschema:"how many runs have ended"`
	Failures int    `json:"failures" jsonschema:"how many failed, also those that timed out or were interrupted"`
	Timeouts int    `json:"timeouts"`
	Denials  int    `json:"denials" jsonschema:"how many denied something"`
	P50      int64  `json:"p50_us" jsonschema:"the median duration in microseconds"`
	P99      int64  `json:"p99_us" jsonschema:"the duration that 99 of 100 runs do not exceed, in microseconds"`
	// Last is when the newest run started. LastRun and Session identify it.
	Last    time.Time `json:"last" jsonschema:"when the newest run started"`
	LastRun string    `json:"last_run" jsonschema:"the id of the newest run"`
	Session string    `json:"session,omitempty" jsonschema:"the session of the newest run"`
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
	// Changes are the differences from the files that were trusted.
	Changes []TrustChange `json:"changes,omitempty" jsonschema:"what has changed since the directory was trusted"`
}

// TrustChange is a file that differs from the file that was trusted.
type TrustChange struct {
	File   string `json:"file"`
	Change string `json:"change" jsonschema:"added, changed or removed"`
	// Diff is a unified diff. It is empty if the texts are unknown: the file is not text or is
	// too long, so only its hash was stored.
	Diff string `json:"diff,omitempty" jsonschema:"a unified diff, for tokens with the role admin; absent if the file is not text or is too long"`
}

// TrustList lists the trusted directories.
type TrustList struct {
	Directories []Trust `json:"directories"`
}
