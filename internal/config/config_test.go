package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
)

// files makes a user's file and a project's file, if their texts are not empty.
func files(t *testing.T, user, project string) *config.Options {
	t.Helper()
	dir := t.TempDir()
	o := &config.Options{Dir: filepath.Join(dir, "project"), UserDir: filepath.Join(dir, "user"), Environ: []string{}}
	for path, text := range map[string]string{config.UserPath(o.UserDir): user, filepath.Join(o.Dir, config.Name): project} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

func load(t *testing.T, o *config.Options) *config.Loaded {
	t.Helper()
	l, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	o := files(t, "", "")
	l := load(t, o)
	want := config.Config{
		Mode: "standard", Store: filepath.Join(o.Dir, ".belay", "belay.db"),
		Limits:    config.Limits{Steps: 100, Parallel: 16, ResultCharacters: 50_000, Tool: 5 * time.Minute, Idle: 5 * time.Minute},
		Approvals: config.Approvals{OnAsk: "wait", Expiry: 24 * time.Hour},
		Sandbox:   config.Sandbox{Mode: "auto"},
		Hooks:     config.Hooks{AllowCommands: true},
		Snapshots: "all",
		Memory:    config.Memory{Mode: "off", File: filepath.Join(o.UserDir, "belay", "memory.db")},
		Serve:     config.Serve{Listen: "127.0.0.1:7717", Workers: 4, MaxBody: 1_000_000, Connections: 4096, Rate: 500, Streams: 2000},
	}
	if diff := cmp.Diff(want, l.Config); diff != "" {
		t.Error(diff)
	}
	if l.Project != o.Dir || l.UserFile != "" || l.ProjectFile != "" || l.From("mode").String() != "default" {
		t.Errorf("project %s, files %q and %q, mode from %s", l.Project, l.UserFile, l.ProjectFile, l.From("mode"))
	}
}

func TestEveryKey(t *testing.T) {
	t.Parallel()
	o := files(t, `
model: anthropic/claude-sonnet-4-5
mode: build
store: ~/belay.db
instructions: |
  two
  lines
tools: [read, grep]
limits: {steps: 1, parallel: 2, result_characters: 3, tool: 90s, idle: 80s, listing_tokens: 70}
budget: {turn_tokens: 4, turn_cost: 0.5, session_tokens: 5, session_cost: 6}
approvals: {on_ask: park, expiry: 2d}
retention: {age: 90d, size: 500MB}
permit:
  rules:
    - deny shell(git push *)
    - {rule: "allow deploy(target=test)", reason: it is a test}
  guards:
    - {id: no-prod, tools: [shell], deny: 'prod-[0-9]+', commands: [git, go], paths: ["src/**"], reason: off limits}
  relax: [destructive.files]
  roots: [../shared, ~/notes]
  tools:
    deploy: {zone: external, reads: [from], writes: [to], urls: [at], command: run}
    "x_*": {zone: 0}
sandbox: {mode: off, write: [~/cache], memory: 3GB, processes: 7, cpu_time: 2h}
network: {private_hosts: [mcp.example.com], proxy: true}
snapshots: files
memory: {mode: propose, file: ~/memory.db}
skills: {enforce_allowed_tools: true}
other_agents: {ignore: [hooks, mcp], strict: true}
telemetry: {content: true, trace_url: "https://jaeger.example/trace/{trace}"}
web: {search: brave, url: "https://search.example.com", key_env: SEARCH_KEY}
serve: {listen: "0.0.0.0:80", hosts: [belay.example.com], url: "https://belay.example.com", workers: 0, trust_proxy: true, max_body: 2MB, connections: 9, rate: 7, streams: 5}
server: https://belay.example.com
token_file: ~/token
channels:
  team: {kind: slack, to: C0123, token_env: SLACK_BOT_TOKEN, app_token_file: app-token, approvers: [U1, U2]}
  pager: {kind: webhook, url: "https://pager.example.com/belay", secret_env: PAGER_SECRET}
hooks: {disable: [project/slow], allow_commands: false, webhook_allowlist: [hooks.example.com], no_previews: true}
providers:
  anthropic: {key_file: key, url: "http://127.0.0.1:8080", thinking: adaptive}
  work:
    kind: openai
    url: https://llm.example.com/v1
    key_env: WORK_API_KEY
    window: 100000
    max_tokens: 1000
    effort: high
    summary: auto
    price: {in: 1, out: 2}
    models:
      vendor/small: {window: 32768, price: {in: 0.5, out: 1, cache_read: 0.05, cache_write: 0}}
      "qwen3:8b": {extra: {chat_template_kwargs: {enable_thinking: false}}}
`, "")
	l := load(t, o)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{
		Model: "anthropic/claude-sonnet-4-5", Mode: "build", Store: filepath.Join(home, "belay.db"), Instructions: "two\nlines\n",
		Tools:     []string{"read", "grep"},
		Telemetry: config.Telemetry{Content: true, TraceURL: "https://jaeger.example/trace/{trace}"},
		Limits:    config.Limits{Steps: 1, Parallel: 2, ResultCharacters: 3, Tool: 90 * time.Second, Idle: 80 * time.Second, ListingTokens: 70},
		Budget:    config.Budget{TurnTokens: 4, TurnCost: 0.5, SessionTokens: 5, SessionCost: 6},
		Approvals: config.Approvals{OnAsk: "park", Expiry: 48 * time.Hour},
		Retention: config.Retention{Age: 90 * 24 * time.Hour, Size: 500_000_000},
		Permit: config.Permit{
			Rules: []permit.Rule{
				{Decision: permit.RuleDeny, Tool: "shell", Pattern: "git push *", Origin: hook.OriginOperator, Where: "the user's belay.yaml:15"},
				{Decision: permit.RuleAllow, Tool: "deploy", Pattern: "target=test", Reason: "it is a test", Origin: hook.OriginOperator, Where: "the user's belay.yaml:16"},
			},
			Guards: []config.Guard{{Where: "the user's belay.yaml:18", Guard: permit.Guard{
				ID: "no-prod", Tools: []string{"shell"}, Deny: "prod-[0-9]+", Commands: []string{"git", "go"}, Paths: []string{"src/**"}, Reason: "off limits",
			}}},
			Relax: []string{"destructive.files"},
			Roots: []string{filepath.Join(filepath.Dir(o.Dir), "shared"), filepath.Join(home, "notes")},
			Tools: map[string]permit.Profile{
				"deploy": {Zone: permit.ZoneExternal, Reads: []string{"from"}, Writes: []string{"to"}, URLs: []string{"at"}, Command: "run"},
				"x_*":    {},
			},
		},
		Snapshots:   "files",
		Sandbox:     config.Sandbox{Mode: "off", Write: []string{filepath.Join(home, "cache")}, Memory: 3_000_000_000, Processes: 7, CPUTime: 2 * time.Hour},
		Network:     config.Network{PrivateHosts: []string{"mcp.example.com"}, Proxy: true},
		Memory:      config.Memory{Mode: "propose", File: filepath.Join(home, "memory.db")},
		Skills:      config.Skills{EnforceAllowedTools: true},
		Web:         config.Web{Search: "brave", URL: "https://search.example.com", KeyEnv: "SEARCH_KEY"},
		OtherAgents: config.OtherAgents{Ignore: []string{"hooks", "mcp"}, Strict: true},
		Serve:       config.Serve{Listen: "0.0.0.0:80", Hosts: []string{"belay.example.com"}, URL: "https://belay.example.com", TrustProxy: true, MaxBody: 2_000_000, Connections: 9, Rate: 7, Streams: 5},
		Server:      "https://belay.example.com", TokenFile: filepath.Join(home, "token"),
		Hooks: config.Hooks{Disable: []string{"project/slow"}, WebhookAllowlist: []string{"hooks.example.com"}, NoPreviews: true},
		Channels: map[string]config.Channel{
			"team":  {Kind: "slack", To: "C0123", Token: config.Secret{Env: "SLACK_BOT_TOKEN"}, AppToken: config.Secret{File: filepath.Join(o.UserDir, "belay", "app-token")}, Approvers: []string{"U1", "U2"}},
			"pager": {Kind: "webhook", URL: "https://pager.example.com/belay", Secret: config.Secret{Env: "PAGER_SECRET"}},
		},
		Providers: map[string]config.Provider{
			"anthropic": {URL: "http://127.0.0.1:8080", KeyFile: filepath.Join(o.UserDir, "belay", "key"), Tuning: config.Tuning{Thinking: config.Adaptive}},
			"work": {
				Kind: config.KindOpenAI, URL: "https://llm.example.com/v1", KeyEnv: []string{"WORK_API_KEY"},
				Tuning: config.Tuning{Window: 100_000, MaxTokens: 1000, Effort: "high", Summary: "auto", Price: belay.Price{In: 1, Out: 2, CacheRead: 1, CacheWrite: 1}},
				Models: map[string]config.Tuning{
					"vendor/small": {Window: 32_768, Price: belay.Price{In: 0.5, Out: 1, CacheRead: 0.05}},
					"qwen3:8b":     {Extra: []byte(`{"chat_template_kwargs":{"enable_thinking":false}}`)},
				},
			},
		},
	}
	if diff := cmp.Diff(want, l.Config, cmpopts.IgnoreUnexported(permit.Profile{})); diff != "" {
		t.Error(diff)
	}
	for _, path := range config.Paths() {
		if l.From(path).Kind != "user" {
			t.Errorf("%s is from %s, want the user's file: a key is missing in this test", path, l.From(path))
		}
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	o := files(t, "mode: permissive\nlimits: {steps: 1, parallel: 1, result_characters: 1, listing_tokens: 1}\n", "mode: build\nlimits:\n  steps: 2\n  parallel: 2\n  listing_tokens: 2\n")
	o.Environ = []string{"BELAY_LIMITS_STEPS=3", "BELAY_LIMITS_LISTING_TOKENS=3", "BELAY_TOOLS=read, grep", "BELAY_MODEL=", "BELAY_HOOKS_NO_PREVIEWS=true", "BELAY_SERVE_WORKERS=0", "BELAY_SERVE_URL=https://b.example.com", "BELAY_SERVER=http://127.0.0.1:7717", "BELAY_TOKEN=secret"}
	l := load(t, o)
	if err := l.Override("limits.steps", "max-steps", "4"); err != nil {
		t.Fatal(err)
	}
	if l.Mode != "build" || l.Limits != (config.Limits{Steps: 4, Parallel: 2, ResultCharacters: 1, Tool: 5 * time.Minute, Idle: 5 * time.Minute, ListingTokens: 3}) || l.Model != "" || !l.Hooks.NoPreviews || l.Serve.Workers != 0 || l.Serve.URL != "https://b.example.com" || l.Server != "http://127.0.0.1:7717" {
		t.Errorf("%+v", l.Config)
	}
	if diff := cmp.Diff([]string{"read", "grep"}, l.Tools); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]string{
		"limits.steps": "--max-steps", "limits.parallel": l.ProjectFile + ":4", "limits.result_characters": l.UserFile + ":2",
		"limits.listing_tokens": "BELAY_LIMITS_LISTING_TOKENS", "tools": "BELAY_TOOLS", "hooks.no_previews": "BELAY_HOOKS_NO_PREVIEWS", "store": "default",
	} {
		if got := l.From(path).String(); got != want {
			t.Errorf("%s is from %s, want %s", path, got, want)
		}
	}
	if err := l.Override("mode", "mode", "stric"); err == nil || !strings.Contains(err.Error(), `--mode: "stric" is not one of`) || !strings.Contains(err.Error(), `did you mean "strict"`) {
		t.Errorf("a bad flag: %v", err)
	}
}

func TestProjectIsFoundUpward(t *testing.T) {
	t.Parallel()
	o := files(t, "", "mode: strict\n")
	root := o.Dir
	o.Dir = filepath.Join(root, "a", "b")
	if err := os.MkdirAll(filepath.Join(o.Dir, ".belay"), 0o700); err != nil {
		t.Fatal(err)
	}
	if l := load(t, o); l.Project != root || l.Mode != "strict" || l.Store != filepath.Join(root, ".belay", "belay.db") {
		t.Errorf("project %s, mode %s, store %s", l.Project, l.Mode, l.Store)
	}
}

// A directory with a directory .belay is a project, even if .belay is empty. So skills,
// agents and sessions are found from subdirectories too. The last cases are exceptions.
func TestProjectOfADirectoryBelay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		made    []string // directories to make, relative to the top directory
		home    string   // HOME, relative to the top directory
		user    string   // the user's settings directory, relative to the top directory
		sticky  bool     // all users share the top directory
		started string
		want    string
	}{
		{name: "skills make a project", made: []string{"p/.belay/skills", "p/src/deep"}, started: "p/src/deep", want: "p"},
		{name: "agents do", made: []string{"p/.belay/agents", "p/src"}, started: "p/src", want: "p"},
		{name: "a store does", made: []string{"p/.belay", "p/src"}, started: "p/src", want: "p"},
		{name: "the nearest one counts", made: []string{".belay", "p/.belay", "p/src"}, started: "p/src", want: "p"},
		{name: "hooks above come before a store", made: []string{".belay/hooks", "p/.belay", "p/src"}, started: "p/src", want: "."},
		{name: "that of the home directory does not count below it", made: []string{".belay", "p"}, home: ".", started: "p", want: "p"},
		{name: "its hooks do not count below it either", made: []string{".belay/hooks", "p"}, home: ".", started: "p", want: "p"},
		{name: "its hooks count in it", made: []string{".belay/hooks"}, home: ".", started: ".", want: "."},
		{name: "and counts in it", made: []string{".belay"}, home: ".", started: ".", want: "."},
		{name: "the user's own settings are no project", made: []string{".belay/belay", "p"}, user: ".belay", started: "p", want: "p"},
		{name: "what anybody can put there does not count", made: []string{".belay", "p"}, sticky: true, started: "p", want: "p"},
		{name: "hooks that anybody can put there do not count", made: []string{".belay/hooks", "p"}, sticky: true, started: "p", want: "p"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			for _, dir := range test.made {
				if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if test.sticky {
				if err := os.Chmod(top, 0o777|fs.ModeSticky); err != nil {
					t.Fatal(err)
				}
			}
			home, user := filepath.Join(t.TempDir(), "home"), t.TempDir()
			if test.home != "" {
				home = filepath.Join(top, test.home)
			}
			if test.user != "" {
				user = filepath.Join(top, test.user)
			}
			l := load(t, &config.Options{Dir: filepath.Join(top, test.started), UserDir: user, SystemDir: t.TempDir(), Environ: []string{"HOME=" + home, "USERPROFILE=" + home}})
			if want := filepath.Join(top, test.want); l.Project != want {
				t.Errorf("the project is %s, want %s", l.Project, want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule          string
		user, project string
		want          []string // parts of the error; nil means no error
	}{
		{"a file of comments says nothing", "", "# mode: strict\n", nil},
		{"an empty group says nothing", "", "limits:\n", nil},
		{"an empty value says nothing", "", "mode:\n", nil},
		{"an unknown key is near one", "", "mode: strict\ntol: [read]\n", []string{`belay.yaml:2: unknown key "tol" (did you mean "tools"?)`}},
		{"an unknown key is near none", "", "zzzzzz: 1\n", []string{`belay.yaml:1: unknown key "zzzzzz": use one of model, mode,`}},
		{"an unknown key in a group", "", "limits:\n  stepps: 1\n", []string{`belay.yaml:2: unknown key "limits.stepps" (did you mean "steps"?)`}},
		{"a group without keys", "", "limits: 3\n", []string{"belay.yaml:1: limits: expected keys with values"}},
		{"a list in place of a file", "", "- mode\n", []string{"belay.yaml:1: the file: expected keys with values"}},
		{"all mistakes are told", "", "limits: {steps: -1, tool: soon}\nmode: lax\n", []string{"limits.steps: \"-1\" is not a number", "limits.tool: \"soon\" is not a duration", "belay.yaml:2: mode: \"lax\" is not one of"}},
		{"a number in place of text", "", "model: 3\n", []string{"model: expected text"}},
		{"a mapping in place of a number", "", "limits: {steps: {a: 1}}\n", []string{"limits.steps: expected a single value"}},
		{"a word in place of a list", "", "tools: read\n", []string{"tools: expected a list"}},
		{"a size", "retention: {size: big}\n", "", []string{`retention.size: "big" is not a size`}},
		{"an amount", "budget: {turn_cost: .nan}\n", "", []string{"budget.turn_cost:"}},
		{"a model without a provider", "", "model: claude\n", []string{"write PROVIDER/NAME"}},
		{"a key given twice", "", "mode: strict\nmode: build\n", []string{"belay.yaml:2: "}},
		{"broken YAML", "", "mode: [\n", []string{"belay.yaml:1: "}},
		{"two documents", "", "mode: strict\n---\nmode: strict\n", []string{"a second document begins here"}},
		{"mistakes of both files are told", "moed: x\n", "moed: x\n", []string{filepath.Join("user", "belay", "belay.yaml") + ":1", filepath.Join("project", "belay.yaml") + ":1"}},

		{"a project tightens the mode", "mode: build\n", "mode: standard\n", nil},
		{"a project does not loosen the default mode", "", "mode: build\n", []string{"stricter but not looser", "BELAY_MODE"}},
		{"a project does not loosen the user's mode", "mode: strict\n", "mode: standard\n", []string{"stricter but not looser"}},
		{"a mode that asks less and does more is looser", "", "mode: unattended\n", []string{"stricter but not looser"}},
		{"a project lowers a budget", "budget: {turn_cost: 2}\n", "budget: {turn_cost: 1}\n", nil},
		{"a project sets a budget where there is none", "", "budget: {turn_cost: 100}\n", nil},
		{"a project does not add a tool", "tools: [read]\n", "tools: [read, shell]\n", []string{"tools: a project may make this setting stricter but not looser"}},
		{"a project does not ask where the user denies", "approvals: {on_ask: deny}\n", "approvals: {on_ask: park}\n", []string{"approvals.on_ask: a project may make this setting stricter but not looser"}},
		{"a project does not raise a budget", "budget: {turn_cost: 2}\n", "budget: {turn_cost: 3}\n", []string{"budget.turn_cost: a project may make this setting stricter but not looser"}},
		{"a project does not lift a budget", "budget: {session_tokens: 2}\n", "budget: {session_tokens: 0}\n", []string{"budget.session_tokens: a project may make this setting stricter but not looser"}},
		{"a project does not say where keys are and go", "", "mode: strict\nproviders:\n  openai: {url: \"http://127.0.0.1:1\"}\n", []string{"belay.yaml:2: providers: a project cannot decide where keys are stored and which servers get them: put it into the user's belay.yaml"}},
		{"a project's rules ask and deny", "", "permit:\n  rules:\n    - deny shell(git push *)\n    - ask write(migrations/**)\n", nil},
		{"a project's rules do not allow", "", "permit:\n  rules:\n    - ask shell(ls)\n    - allow shell(ls)\n", []string{`belay.yaml:4: permit.rules: "allow shell(ls)": a rule of a project may ask or deny, but not allow: put this rule into the user's belay.yaml`}},
		{"a rule in an object does not either", "", "permit: {rules: [{rule: allow shell, reason: why not}]}\n", []string{`belay.yaml:1: permit.rules: "allow shell": a rule of a project may ask or deny`}},
		{"a rule that cannot be read", "", "permit:\n  rules:\n    - dney shell\n", []string{`belay.yaml:3: permit.rules: rule "dney shell": the first word is "dney"`, `did you mean "deny"`}},
		{"a rule whose pattern cannot be read", "permit:\n  rules:\n    - allow shell(ls)\n    - allow deploy(prod)\n", "", []string{`belay.yaml:4: permit.rules: rule "allow deploy(prod)": cannot determine whether "prod" is a path`}},
		{"its pattern is read when all tools are known", "permit:\n  rules:\n    - allow deploy(prod/*)\n  tools: {deploy: {zone: 4, writes: [to]}}\n", "", nil},
		{"a rule of another kind", "", "permit: {rules: [3]}\n", []string{"belay.yaml:1: permit.rules: expected a rule"}},
		{"rules that are no list", "", "permit: {rules: deny shell}\n", []string{"belay.yaml:1: permit.rules: expected a list"}},
		{"a rule with an unknown key", "", "permit:\n  rules:\n    - {rule: deny shell, raeson: no}\n", []string{`belay.yaml:3: permit.rules: unknown key "raeson" (did you mean "reason"?)`}},
		{"both may guard", "permit: {guards: [{id: a, deny: x}]}\n", "permit: {guards: [{id: b, commands: [ls]}]}\n", nil},
		{"guards have ids of their own", "permit: {guards: [{id: a, deny: x}]}\n", "permit:\n  guards:\n    - {id: a, deny: y}\n", []string{`belay.yaml:3: permit.guards: the guard "a" already exists in the user's belay.yaml:1`}},
		{"a guard that guards nothing", "", "permit: {guards: [{id: a}]}\n", []string{`belay.yaml:1: permit.guards: guard "a": the guard checks nothing`}},
		{"a guard with a bad expression", "", "permit: {guards: [{id: a, deny: '('}]}\n", []string{`permit.guards: guard "a": deny: error parsing regexp`}},
		{"a guard with an unknown key", "", "permit: {guards: [{id: a, command: [ls]}]}\n", []string{`permit.guards: unknown key "command" (did you mean "commands"?)`}},
		{"an unknown protection", "permit:\n  relax: [destructive.file]\n", "", []string{`belay.yaml:2: permit.relax: there is no protection "destructive.file" (did you mean "destructive.files"?)`}},
		{"an unknown zone", "permit: {tools: {deploy: {zone: 7}}}\n", "", []string{"permit.tools.deploy: zone: 7 is not a zone: use one of 0 safe, 1 workspace"}},
		{"a project relaxes nothing", "", "permit: {relax: [destructive.files]}\n", []string{"belay.yaml:1: permit.relax: a project cannot decide which protections apply: put it into the user's belay.yaml"}},
		{"a project adds no roots", "", "permit: {roots: [..]}\n", []string{"permit.roots: a project cannot decide"}},
		{"a project does not say what tools do", "", "permit: {tools: {deploy: {zone: 0}}}\n", []string{"permit.tools: a project cannot decide what tools do"}},
		{"a home that YAML reads as nothing", "sandbox:\n  write: [~]\n", "", []string{`belay.yaml:2: sandbox.write: a directory is missing: in YAML a bare ~ means null, write "~"`}},
		{"a project tightens the sandbox", "", "sandbox: {mode: require}\n", nil},
		{"a project hides texts from hooks", "", "hooks: {no_previews: true}\n", nil},
		{"a project does not show texts to hooks", "hooks: {no_previews: true}\n", "hooks: {no_previews: false}\n", []string{"hooks.no_previews: a project may make this setting stricter"}},
		{"a project makes gates of other agents strict", "", "other_agents: {strict: true}\n", nil},
		{"a project does not make them open again", "other_agents: {strict: true}\n", "other_agents: {strict: false}\n", []string{"other_agents.strict: a project may make this setting stricter but not looser"}},
		{"a project does not decide which of them are used", "", "other_agents: {ignore: [hooks]}\n", []string{"other_agents.ignore: "}},
		{"an unknown kind of files of other agents", "other_agents: {ignore: [hook]}\n", "", []string{`"hook" is not one of`}},
		{"a project makes skills' tools a limit", "", "skills: {enforce_allowed_tools: true}\n", nil},
		{"a project does not lift that limit", "skills: {enforce_allowed_tools: true}\n", "skills: {enforce_allowed_tools: false}\n", []string{"skills.enforce_allowed_tools: a project may make this setting stricter but not looser"}},
		{"a project does not turn the sandbox off", "", "sandbox:\n  mode: off\n", []string{"belay.yaml:2: sandbox.mode: a project may make this setting stricter but not looser: put it into the user's belay.yaml"}},
		{"a project does not loosen a sandbox that is required", "sandbox: {mode: require}\n", "sandbox: {mode: auto}\n", []string{"sandbox.mode: a project may make this setting stricter but not looser"}},
		{"a project does not raise the bounds", "", "sandbox: {memory: 900GB}\n", []string{"sandbox.memory: a project cannot decide how many resources commands may use"}},
		{"a bound of processes is a number", "sandbox: {processes: many}\n", "", []string{"sandbox.processes"}},
		{"a bound of time is a duration", "sandbox: {cpu_time: long}\n", "", []string{"sandbox.cpu_time"}},
		{"a project does not open the sandbox", "", "sandbox: {write: [/]}\n", []string{"sandbox.write: a project cannot decide"}},
		{"a project's store is in the project", "", "store: ../x.db\n", []string{"is outside the project"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(files(t, test.user, test.project))
			if len(test.want) == 0 && err != nil {
				t.Errorf("it is refused: %v", err)
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q in it", err, want)
				}
			}
		})
	}
}

// The file that init writes sets nothing. Every commented line of it is valid.
func TestTemplate(t *testing.T) {
	t.Parallel()
	l := load(t, files(t, "", config.Template()))
	if diff := cmp.Diff("standard", l.Mode); diff != "" {
		t.Error(diff)
	}
	var uncommented []string
	for line := range strings.Lines(config.Template()) {
		setting := strings.TrimPrefix(line, "# ")
		key, _, ok := strings.Cut(strings.TrimSpace(setting), ":")
		if ok && line != setting && !strings.Contains(key, " ") && !strings.Contains(key, "/") || strings.HasPrefix(line, "#   Run ") {
			uncommented = append(uncommented, setting)
		}
	}
	l = load(t, files(t, "", strings.Join(uncommented, "")))
	for _, path := range config.Paths() {
		if from := l.From(path); from.Kind != "project" && !slices.Contains(forUsers, path) {
			t.Errorf("the template does not show %s", path)
		}
	}
}

// forUsers are settings that a project's file must not have.
var forUsers = []string{"web.search", "web.url", "web.key_env", "other_agents.ignore", "hooks.disable", "hooks.allow_commands", "hooks.webhook_allowlist", "permit.relax", "permit.roots", "permit.tools", "sandbox.write", "sandbox.memory", "sandbox.processes", "sandbox.cpu_time", "network.private_hosts", "network.proxy", "memory.file", "providers", "serve.listen", "serve.hosts", "serve.url", "telemetry.content", "telemetry.trace_url", "channels", "serve.workers", "serve.trust_proxy", "serve.max_body", "serve.connections", "serve.rate", "serve.streams", "server", "token_file"}

// The rules and guards of the user's file and of the project's file apply together.
func TestRulesAddUp(t *testing.T) {
	t.Parallel()
	l := load(t, files(t, "permit:\n  rules: [allow shell(make *)]\n  guards: [{id: a, deny: x}]\n", "permit:\n  rules:\n    - deny shell(make deploy)\n  guards:\n    - {id: b, deny: y}\n"))
	var got []string
	for _, r := range l.Permit.Rules {
		got = append(got, r.String()+" in "+r.Where+" of "+r.Origin.String())
	}
	for _, g := range l.FloorOptions().Guards {
		got = append(got, g.ID)
	}
	want := []string{"allow shell(make *) in the user's belay.yaml:2 of operator", "deny shell(make deploy) in belay.yaml:3 of project", "a", "b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if from, want := l.From("permit.rules").String(), l.UserFile+":2, "+l.ProjectFile+":2"; from != want {
		t.Errorf("the rules are from %s, want %s", from, want)
	}
}

// Settings that loosen the floor must be in a file, where people see them.
func TestFloorIsNotLoosenedByVariables(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ variable, want string }{
		{"BELAY_PERMIT_RULES=allow shell", "BELAY_PERMIT_RULES: set it in a belay.yaml, not by a variable"},
		{"BELAY_PERMIT_RELAX=self.command", "BELAY_PERMIT_RELAX: set it in a belay.yaml, not by a variable"},
		{"BELAY_PERMIT_ROOTS=/", "BELAY_PERMIT_ROOTS: set it in a belay.yaml, not by a variable"},
		{"BELAY_SANDBOX_WRITE=/", "BELAY_SANDBOX_WRITE: set it in a belay.yaml, not by a variable"},
		{"BELAY_SANDBOX_MODE=off", `BELAY_SANDBOX_MODE: set "off" in the user's belay.yaml, not by a variable`},
		{"BELAY_SANDBOX_MODE=require", ""},
	} {
		o := files(t, "", "")
		o.Environ = []string{test.variable}
		_, err := config.Load(o)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: the error is %v, want %q in it", test.variable, err, test.want)
		}
	}
}

// The user sets the limits of confined commands. A variable overrides the file.
//
// SPEC P-13
func TestBoundsOfTheSandbox(t *testing.T) {
	t.Parallel()
	o := files(t, "sandbox: {memory: 3GB, processes: 7}\n", "")
	o.Environ = []string{"BELAY_SANDBOX_MEMORY=500MB", "BELAY_SANDBOX_CPU_TIME=90s"}
	l := load(t, o)
	if want := (config.Sandbox{Mode: "auto", Memory: 500_000_000, Processes: 7, CPUTime: 90 * time.Second}); !cmp.Equal(l.Sandbox, want) {
		t.Error(cmp.Diff(want, l.Sandbox))
	}
	if l.From("sandbox.memory").Kind == "user" || l.From("sandbox.processes").Kind != "user" {
		t.Errorf("memory is from %s, processes are from %s", l.From("sandbox.memory"), l.From("sandbox.processes"))
	}
}

// Belay rejects a mistyped variable, because a mistyped limit would have no effect.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ variable, want string }{
		{"BELAY_LIMIT_STEPS=9", `BELAY_LIMIT_STEPS: there is no such setting (did you mean "BELAY_LIMITS_STEPS"?)`},
		{"BELAY_ZZZZZZZZZZZZZZZZZZZZZZ=9", "BELAY_ZZZZZZZZZZZZZZZZZZZZZZ: there is no such setting"},
		{"BELAY_MODDE=read-only", `did you mean "BELAY_MODE"`},
		{"BELAY_MODDE=", ""},
		{"BELAY_DISABLE_HOOKS=1", ""},
		{"BELAY_HOOKS_DISABLE=1", `BELAY_HOOKS_DISABLE: there is no such setting (did you mean "BELAY_DISABLE_HOOKS"?)`},
		{"BELAY_ALLOW_COMMANDS=0", ""},
		{"BELAY_ALLOW_COMMANDS=maybe", `BELAY_ALLOW_COMMANDS: "maybe" is neither true nor false`},
		{"BELAY_DEMO_DIR=x", ""},
		{"BELAY_CHAT_TEST_HISTORY=x", ""},
		{"BELAYTEST_X=x", ""},
		{"BELAYED=x", ""},
	} {
		o := files(t, "", "")
		o.Environ = []string{test.variable}
		_, err := config.Load(o)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: the error is %v, want %q in it", test.variable, err, test.want)
		}
	}
}

func TestVariable(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"limits.result_characters": "BELAY_LIMITS_RESULT_CHARACTERS", "providers.llama.cpp.url": "BELAY_PROVIDERS_LLAMA_CPP_URL", "providers.my-own.url": "BELAY_PROVIDERS_MY_OWN_URL",
	} {
		if got := config.Variable(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// A project cannot decide what hooks may do. A directory with hooks is a project.
//
// SPEC W-07
func TestHooksAreTheOperators(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"hooks: {disable: [all]}", "hooks: {allow_commands: true}", "hooks: {webhook_allowlist: [evil.test]}"} {
		if _, err := config.Load(files(t, "", line+"\n")); err == nil || !strings.Contains(err.Error(), "a project cannot decide") {
			t.Errorf("%s: the error is %v", line, err)
		}
	}
	o := files(t, "", "")
	below := filepath.Join(o.Dir, "src", "deep")
	for _, dir := range []string{below, filepath.Join(o.Dir, ".belay", "hooks")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if l := load(t, &config.Options{Dir: below, UserDir: o.UserDir, Environ: []string{}}); l.Project != o.Dir {
		t.Errorf("the project is %s, want %s, which has hooks", l.Project, o.Dir)
	}
}

// The user's file overrides the machine's file.
func TestTheMachinesFile(t *testing.T) {
	t.Parallel()
	o := files(t, "mode: strict\n", "")
	o.SystemDir = t.TempDir()
	if err := os.WriteFile(filepath.Join(o.SystemDir, config.Name), []byte("mode: build\nhooks: {allow_commands: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := load(t, o)
	if l.Mode != "strict" || l.Hooks.AllowCommands || l.From("hooks.allow_commands").Kind != "system" {
		t.Errorf("mode %s, commands %t from %s", l.Mode, l.Hooks.AllowCommands, l.From("hooks.allow_commands"))
	}
}

// Belay suggests a variable only if the part after BELAY_ is similar.
func TestNoVariableIsGuessedByWhatAllBeginWith(t *testing.T) {
	t.Parallel()
	o := files(t, "", "")
	o.Environ = []string{"BELAY_MEMROY=on"}
	if _, err := config.Load(o); err == nil || strings.Contains(err.Error(), "BELAY_MODEL") {
		t.Errorf("the error is %v", err)
	}
}
