// Package config reads the settings of the command line. They come from the machine's
// belay.yaml, the user's belay.yaml, the project's belay.yaml, and BELAY_* variables. Later
// sources override earlier ones. Flags come last, see [Loaded.Override]. Each value
// remembers its source.
//
// A project's file cannot loosen the settings that protect the user, such as the mode, the
// budget and the sandbox. So it is safe to open a stranger's repository.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/internal/near"
)

// Name is the name of a settings file.
const Name = "belay.yaml"

// Config has the settings of Belay.
type Config struct {
	// Model is PROVIDER/NAME. Empty means the default model of the first provider with a
	// key.
	Model string `json:"model"`
	// Mode is the name of a mode, see package permit.
	Mode string `json:"mode"`
	// Store is the absolute path of the file that keeps sessions, or the URL of a database,
	// see [IsDSN].
	Store string `json:"store"`
	// Instructions are added to the system prompt.
	Instructions string `json:"instructions"`
	// Tools are the names of the built-in tools that the agent has. nil means all.
	Tools     []string  `json:"tools"`
	Limits    Limits    `json:"limits"`
	Budget    Budget    `json:"budget"`
	Approvals Approvals `json:"approvals"`
	Retention Retention `json:"retention"`
	Permit    Permit    `json:"permit"`
	Sandbox   Sandbox   `json:"sandbox"`
	Network   Network   `json:"network"`
	// Snapshots says of which changes files are kept, so that sessions can be rewound: all,
	// files (of the tools write and edit) or off.
	Snapshots string `json:"snapshots"`
	Memory    Memory `json:"memory"`
	Hooks     Hooks  `json:"hooks"`
	Skills    Skills `json:"skills"`
	Web       Web    `json:"web"`
	// OtherAgents says which files of other coding agents are used.
	OtherAgents OtherAgents `json:"other_agents"`
	Serve       Serve       `json:"serve"`
	// Telemetry says what is sent to a collector of OpenTelemetry.
	Telemetry Telemetry `json:"telemetry"`
	// Server is the address of the server that commands use instead of the store of the
	// project, or "".
	Server string `json:"server"`
	// TokenFile is the absolute path of a file with the token for Server, or "".
	TokenFile string `json:"token_file"`
	// Channels are the places where people get approvals. A key is the name of a channel.
	Channels map[string]Channel `json:"channels"`
	// Providers are the settings of providers. A key is the name of a provider.
	// [Loaded.Provider] adds the built-in values.
	Providers map[string]Provider `json:"providers"`
}

// Limits limits a turn. Zero means the default.
type Limits struct {
	Steps            int           `json:"steps"`
	Parallel         int           `json:"parallel"`
	ResultCharacters int           `json:"result_characters"`
	Tool             time.Duration `json:"tool"`
	Idle             time.Duration `json:"idle"`
	// ListingTokens limits the list of skills, and the list of subagents, in each request.
	ListingTokens int `json:"listing_tokens"`
}

// Budget limits turns and sessions in tokens and US dollars. Zero means no limit.
type Budget struct {
	TurnTokens    int     `json:"turn_tokens"`
	TurnCost      float64 `json:"turn_cost"`
	SessionTokens int     `json:"session_tokens"`
	SessionCost   float64 `json:"session_cost"`
}

// Approvals says what happens when a call needs approval.
type Approvals struct {
	// OnAsk is wait, park or deny. Without a terminal, wait means park.
	OnAsk  string        `json:"on_ask"`
	Expiry time.Duration `json:"expiry"`
}

// Hooks has settings for hooks that files declare.
type Hooks struct {
	// Disable lists the ids of hooks that do not run, or "all". Hooks that ask a person
	// always run.
	Disable []string `json:"disable"`
	// AllowCommands lets hooks run commands and workers. If false, gates that need them
	// deny.
	AllowCommands bool `json:"allow_commands"`
	// WebhookAllowlist lists the hosts that webhooks may call.
	WebhookAllowlist []string `json:"webhook_allowlist"`
	// NoPreviews leaves the texts of the user and the model out of the input of
	// turn.post_turn.
	NoPreviews bool `json:"no_previews"`
}

// Skills has settings for skills.
type Skills struct {
	// EnforceAllowedTools makes the field allowed-tools of an active skill a limit, for all
	// agents.
	EnforceAllowedTools bool `json:"enforce_allowed_tools"`
}

// Web has the settings of the search engine for the tool web_search.
type Web struct {
	// Search is searxng or brave. Empty means that the agent has no tool web_search.
	Search string `json:"search"`
	// URL is the address of the search engine. It is required for searxng.
	URL string `json:"url"`
	// KeyEnv is the variable with the key of the search engine.
	KeyEnv string `json:"key_env"`
}

// OtherAgents has settings for files that were written for other coding agents, such as
// .claude and AGENTS.md.
type OtherAgents struct {
	// Ignore lists the kinds of files that Belay does not use, see [OtherAgentsKinds], or
	// "all".
	Ignore []string `json:"ignore"`
	// Strict makes their gates deny when a hook fails. By default, a failed hook of another
	// agent does what that agent would do, which is mostly to continue.
	Strict bool `json:"strict"`
}

// OtherAgentsKinds returns the words that other_agents.ignore may have, besides "all".
func OtherAgentsKinds() []string {
	return []string{"agents", "commands", "hooks", "instructions", "mcp", "permissions", "plugins", "skills"}
}

// Uses reports whether Belay uses a kind of files of other agents.
func (o *OtherAgents) Uses(kind string) bool {
	return !slices.Contains(o.Ignore, kind) && !slices.Contains(o.Ignore, "all")
}

// Serve has the settings of belay serve.
type Serve struct {
	// Listen is the address, such as 127.0.0.1:7717.
	Listen string `json:"listen"`
	// Hosts are the names of the server, besides the names of this machine.
	Hosts []string `json:"hosts"`
	// URL is the address of the server for people, for links in messages.
	URL string `json:"url"`
	// Workers is how many turns the server runs at once. 0 leaves them to belay worker.
	Workers int `json:"workers"`
	// TrustProxy makes the server use the client address that its proxy sends.
	TrustProxy bool `json:"trust_proxy"`
	// MaxBody is the maximum size of a request. Connections is the maximum number of open
	// connections.
	MaxBody     int64 `json:"max_body"`
	Connections int   `json:"connections"`
	// Rate is how many requests a token may send in a second. Streams is how many event
	// streams it may have open.
	Rate    int `json:"rate"`
	Streams int `json:"streams"`
}

// Telemetry says what is sent to a collector, if the variables OTEL_* name one.
type Telemetry struct {
	// Content adds prompts, inputs and outputs to spans, without what looks like a secret.
	Content bool `json:"content"`
	// TraceURL is the address of the page that shows a trace, for links in the console. {trace}
	// stands for the id of the trace.
	TraceURL string `json:"trace_url"`
}

// Retention limits what `belay store prune` keeps. Zero means no limit.
type Retention struct {
	Age  time.Duration `json:"age"`
	Size int64         `json:"size"`
}

// field describes a setting: its path in the file, where its value is, and how to check it.
type field struct {
	path  string
	value func(*Config) any
	check func(*Config) error
	// private completes the sentence "a project cannot decide …". Empty means that a
	// project may change the setting.
	private string
	// inFiles returns why a variable or a flag cannot set the value, or "".
	inFiles func(*Config) string
	// variable is the name of the environment variable, if it does not follow from the
	// path.
	variable string
	// looser reports whether a project's value is looser than the user's.
	looser func(project, user *Config) bool
}

// fields returns all settings, in the order in which they are shown.
func fields() []field {
	return []field{
		{path: "model", value: func(c *Config) any { return &c.Model }},
		{path: "mode", value: func(c *Config) any { return &c.Mode }, check: func(c *Config) error { return oneOf(c.Mode, ModeNames()) }, looser: looserMode},
		{path: "store", value: func(c *Config) any { return &c.Store }},
		{path: "instructions", value: func(c *Config) any { return &c.Instructions }},
		{path: "tools", value: func(c *Config) any { return &c.Tools }, looser: looserTools},
		{path: "limits.steps", value: func(c *Config) any { return &c.Limits.Steps }},
		{path: "limits.parallel", value: func(c *Config) any { return &c.Limits.Parallel }},
		{path: "limits.result_characters", value: func(c *Config) any { return &c.Limits.ResultCharacters }},
		{path: "limits.tool", value: func(c *Config) any { return &c.Limits.Tool }},
		{path: "limits.idle", value: func(c *Config) any { return &c.Limits.Idle }},
		{path: "limits.listing_tokens", value: func(c *Config) any { return &c.Limits.ListingTokens }},
		{path: "budget.turn_tokens", value: func(c *Config) any { return &c.Budget.TurnTokens }, looser: looserNumber(func(c *Config) float64 { return float64(c.Budget.TurnTokens) })},
		{path: "budget.turn_cost", value: func(c *Config) any { return &c.Budget.TurnCost }, looser: looserNumber(func(c *Config) float64 { return c.Budget.TurnCost })},
		{path: "budget.session_tokens", value: func(c *Config) any { return &c.Budget.SessionTokens }, looser: looserNumber(func(c *Config) float64 { return float64(c.Budget.SessionTokens) })},
		{path: "budget.session_cost", value: func(c *Config) any { return &c.Budget.SessionCost }, looser: looserNumber(func(c *Config) float64 { return c.Budget.SessionCost })},
		{path: "approvals.on_ask", value: func(c *Config) any { return &c.Approvals.OnAsk }, check: func(c *Config) error { return oneOf(c.Approvals.OnAsk, []string{"wait", "park", "deny"}) }, looser: func(project, user *Config) bool {
			return user.Approvals.OnAsk == "deny" && project.Approvals.OnAsk != "deny"
		}},
		{path: "approvals.expiry", value: func(c *Config) any { return &c.Approvals.Expiry }},
		{path: "retention.age", value: func(c *Config) any { return &c.Retention.Age }},
		{path: "retention.size", value: func(c *Config) any { return &c.Retention.Size }},
		{path: "permit.rules", value: func(c *Config) any { return &c.Permit.Rules }, inFiles: always},
		{path: "permit.guards", value: func(c *Config) any { return &c.Permit.Guards }, inFiles: always},
		{path: "permit.relax", value: func(c *Config) any { return &c.Permit.Relax }, check: func(c *Config) error { return checkProtections(c.Permit.Relax) }, private: "which protections apply", inFiles: always},
		{path: "permit.roots", value: func(c *Config) any { return &c.Permit.Roots }, check: func(c *Config) error { return checkDirectories(c.Permit.Roots) }, private: "which directories outside the project are used", inFiles: always},
		{path: "permit.tools", value: func(c *Config) any { return &c.Permit.Tools }, private: "what tools do", inFiles: always},
		{path: "sandbox.mode", value: func(c *Config) any { return &c.Sandbox.Mode }, check: func(c *Config) error { return oneOf(c.Sandbox.Mode, sandboxModes()) }, looser: looserSandbox, inFiles: never(SandboxOff)},
		{path: "sandbox.write", value: func(c *Config) any { return &c.Sandbox.Write }, check: func(c *Config) error { return checkDirectories(c.Sandbox.Write) }, private: "which directories outside the project are used", inFiles: always},
		{path: "sandbox.memory", value: func(c *Config) any { return &c.Sandbox.Memory }, private: "how many resources commands may use"},
		{path: "sandbox.processes", value: func(c *Config) any { return &c.Sandbox.Processes }, private: "how many resources commands may use"},
		{path: "sandbox.cpu_time", value: func(c *Config) any { return &c.Sandbox.CPUTime }, private: "how many resources commands may use"},
		{path: "network.private_hosts", value: func(c *Config) any { return &c.Network.PrivateHosts }, private: "which host names may resolve to private addresses"},
		{path: "network.proxy", value: func(c *Config) any { return &c.Network.Proxy }, private: "whether a proxy is used"},
		{path: "hooks.disable", value: func(c *Config) any { return &c.Hooks.Disable }, private: "which hooks do not run", variable: "BELAY_DISABLE_HOOKS"},
		{path: "hooks.allow_commands", value: func(c *Config) any { return &c.Hooks.AllowCommands }, private: "whether commands run", variable: "BELAY_ALLOW_COMMANDS"},
		{path: "hooks.webhook_allowlist", value: func(c *Config) any { return &c.Hooks.WebhookAllowlist }, private: "where webhooks go", variable: "BELAY_WEBHOOK_ALLOWLIST"},
		{path: "hooks.no_previews", value: func(c *Config) any { return &c.Hooks.NoPreviews }, looser: func(project, user *Config) bool {
			return user.Hooks.NoPreviews && !project.Hooks.NoPreviews
		}},
		{path: "skills.enforce_allowed_tools", value: func(c *Config) any { return &c.Skills.EnforceAllowedTools }, looser: func(project, user *Config) bool {
			return user.Skills.EnforceAllowedTools && !project.Skills.EnforceAllowedTools
		}},
		{path: "web.search", value: func(c *Config) any { return &c.Web.Search }, check: func(c *Config) error { return oneOf(c.Web.Search, []string{"searxng", "brave"}) }, private: whoIsAsked},
		{path: "web.url", value: func(c *Config) any { return &c.Web.URL }, check: func(c *Config) error { return checkServer(c.Web.URL) }, private: whoIsAsked},
		{path: "web.key_env", value: func(c *Config) any { return &c.Web.KeyEnv }, private: whoIsAsked},
		{path: "other_agents.ignore", value: func(c *Config) any { return &c.OtherAgents.Ignore }, check: func(c *Config) error { return checkOtherAgents(c.OtherAgents.Ignore) }, private: "which files of other agents are used"},
		{path: "other_agents.strict", value: func(c *Config) any { return &c.OtherAgents.Strict }, looser: func(project, user *Config) bool {
			return user.OtherAgents.Strict && !project.OtherAgents.Strict
		}},
		{path: "snapshots", value: func(c *Config) any { return &c.Snapshots }, check: func(c *Config) error { return oneOf(c.Snapshots, snapshotModes()) }, looser: looserSnapshots},
		{path: "memory.mode", value: func(c *Config) any { return &c.Memory.Mode }, check: func(c *Config) error { return oneOf(c.Memory.Mode, memoryModes()) }, looser: looserMemory},
		{path: "memory.file", value: func(c *Config) any { return &c.Memory.File }, private: "where memories are kept"},
		{path: "serve.listen", value: func(c *Config) any { return &c.Serve.Listen }, private: howServed},
		{path: "serve.hosts", value: func(c *Config) any { return &c.Serve.Hosts }, private: howServed},
		{path: "serve.url", value: func(c *Config) any { return &c.Serve.URL }, check: func(c *Config) error { return checkServeURL(c.Serve.URL) }, private: howServed},
		{path: "telemetry.content", value: func(c *Config) any { return &c.Telemetry.Content }, private: "what is sent to a collector"},
		{path: "telemetry.trace_url", value: func(c *Config) any { return &c.Telemetry.TraceURL }, check: func(c *Config) error { return checkTraceURL(c.Telemetry.TraceURL) }, private: "where the console links to"},
		{path: "serve.workers", value: func(c *Config) any { return &c.Serve.Workers }, private: howServed},
		{path: "serve.trust_proxy", value: func(c *Config) any { return &c.Serve.TrustProxy }, private: howServed},
		{path: "serve.max_body", value: func(c *Config) any { return &c.Serve.MaxBody }, private: howServed},
		{path: "serve.connections", value: func(c *Config) any { return &c.Serve.Connections }, private: howServed},
		{path: "serve.rate", value: func(c *Config) any { return &c.Serve.Rate }, private: howServed},
		{path: "serve.streams", value: func(c *Config) any { return &c.Serve.Streams }, private: howServed},
		{path: "server", value: func(c *Config) any { return &c.Server }, check: func(c *Config) error { return checkServer(c.Server) }, private: whichServer},
		{path: "token_file", value: func(c *Config) any { return &c.TokenFile }, private: whichServer},
		{path: "channels", value: func(c *Config) any { return &c.Channels }, private: "who is asked for approvals, and where", inFiles: always},
		{path: "providers", value: func(c *Config) any { return &c.Providers }, private: "where keys are stored and which servers get them", inFiles: always},
	}
}

// These complete the sentence "a project cannot decide …".
const (
	howServed   = "how the server is reached"
	whichServer = "which server gets your messages and your token"
	whoIsAsked  = "which search engine gets your questions and your key"
)

// checkOtherAgents returns an error if a word is not a kind of files of other agents.
func checkOtherAgents(kinds []string) error {
	for _, kind := range kinds {
		if kind == "all" {
			continue
		}
		if err := oneOf(kind, OtherAgentsKinds()); err != nil {
			return err
		}
	}
	return nil
}

// checkServer returns an error if a text is not the address of a server. The error does not
// repeat the text, which may have a password.
func checkServer(word string) error {
	u, err := url.Parse(word)
	if word == "" || err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	return errors.New("it is not the address of a server: write https://HOST or http://HOST:PORT")
}

// always is the function inFiles of settings that must be in a file, where people see them.
func always(*Config) string { return "set it in a " + Name + ", not by a variable" }

// never returns the function inFiles for a sandbox mode that must be in a file.
func never(mode string) func(*Config) string {
	return func(c *Config) string {
		if c.Sandbox.Mode != mode {
			return ""
		}
		return fmt.Sprintf("set %q in the user's %s, not by a variable", mode, Name)
	}
}

// Variable returns the environment variable of a setting. For example, limits.steps has
// BELAY_LIMITS_STEPS.
func Variable(path string) string {
	for _, f := range fields() {
		if f.path == path && f.variable != "" {
			return f.variable
		}
	}
	return named(path)
}

// named returns the variable name that follows from a path.
func named(path string) string {
	return "BELAY_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(path))
}

// Paths returns the paths of all settings, in order.
func Paths() []string {
	var paths []string
	for _, f := range fields() {
		paths = append(paths, f.path)
	}
	return paths
}

// assign parses a text and stores it in a value.
func assign(into any, word string) error {
	switch v := into.(type) {
	case *string:
		*v = word
	case *[]string:
		*v = splitList(word)
	case *bool:
		switch strings.ToLower(word) {
		case "true", "yes", "on", "1":
			*v = true
		case "false", "no", "off", "0":
			*v = false
		default:
			return fmt.Errorf("%q is neither true nor false", word)
		}
	case *int:
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number from 0 up", word)
		}
		*v = n
	case *float64:
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x >= 0) || x > 1e12 {
			return fmt.Errorf("%q is not an amount from 0 up", word)
		}
		*v = x
	case *time.Duration:
		d, err := ParseDuration(word)
		if err != nil {
			return err
		}
		*v = d
	case *int64:
		n, err := parseSize(word)
		if err != nil {
			return err
		}
		*v = n
	}
	return nil
}

// splitList splits a text at commas. It drops empty parts.
func splitList(word string) []string {
	list := []string{}
	for part := range strings.SplitSeq(word, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// ParseDuration parses a Go duration or a number of days, such as 36h or 30d.
func ParseDuration(word string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(word, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write 90s, 5m, 36h or 30d", word)
	}
	return d, nil
}

// units are the units of a size.
var units = []struct {
	suffix string
	bytes  int64
}{{"GB", 1_000_000_000}, {"MB", 1_000_000}, {"KB", 1_000}, {"B", 1}, {"", 1}}

// parseSize parses a number of bytes, such as 500MB or 2GB.
func parseSize(word string) (int64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(strings.ToUpper(word), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err == nil && n >= 0 && n < 1<<62/u.bytes {
			return n * u.bytes, nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not a size: write 500MB or 2GB", word)
}

func oneOf(word string, words []string) error {
	if word == "" || slices.Contains(words, word) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s%s", word, strings.Join(words, ", "), near.Hint(word, words))
}

func looserNumber(of func(*Config) float64) func(project, user *Config) bool {
	return func(project, user *Config) bool {
		return of(user) > 0 && (of(project) > of(user) || of(project) == 0)
	}
}

// looserTools reports whether a project has a tool that the user's list leaves out. An empty
// list means all tools.
func looserTools(project, user *Config) bool {
	return len(user.Tools) > 0 && (len(project.Tools) == 0 || slices.ContainsFunc(project.Tools, func(name string) bool { return !slices.Contains(user.Tools, name) }))
}

// absolute returns an absolute path. A relative path starts at the directory from.
func absolute(path, from string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(from, path)
}
