package repotest_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A level is a layer of the repository. A package imports only packages of lower levels. It
// never imports another package of its own level: move shared code to a lower level.
type level int

const (
	levelStandard level = iota // what packages everywhere miss in the standard library
	levelWords                 // packages that the hook runtime and higher levels share
	levelHook                  // the hook runtime
	levelBelay                 // the runtime of agents: types, interfaces and the loop
	levelShared                // internal packages that several packages of higher levels use
	levelReplay                // replays recorded sessions: its report is for clients too
	levelRooms                 // the parts of an agent; each can be used without the others
	levelVendors               // translates files of other agents for a part
	levelHosts                 // packages that combine parts
	levelAssembly              // makes agents from settings and all parts
	levelInspect               // describes what agents have
	levelEmbed                 // for programs that embed all parts
	levelServe                 // offers agents to other programs
	levelPrograms              // commands, generators and examples: may import everything
)

// A room is a package and its level. With the suffix "/..." it is a package and all
// packages below it.
type room struct {
	pattern    string
	level      level
	thirdParty []string // allowed import path prefixes, in addition to the standard library
	why        string   // the reason, which is printed when the rule is broken
}

// rooms has a line for every package: the test rejects a package without one. If several
// patterns cover a package, the longest pattern applies.
var rooms = []room{
	{"internal/lazyregexp", levelStandard, nil, "programs start without the regular expressions that they do not need"},
	{"internal/near", levelWords, nil, "near names are for the errors of every room"},
	{"internal/visible", levelWords, nil, "what came from elsewhere is made fit for terminals alike wherever it is shown"},
	{"internal/convert", levelInspect, []string{"github.com/pelletier/go-toml"}, "the files of other agents become Belay's own: it reads them as agents are assembled, and Codex and Gemini CLI have files in TOML"},
	{"internal/namedfile", levelWords, nil, "the files that a command names are found alike where hooks are read and where trust covers them"},
	{"internal/diff", levelWords, []string{"github.com/aymanbagabas/go-udiff"}, "texts are compared alike wherever a change is shown"},
	{"internal/mdtable", levelWords, nil, "tables in Markdown are found in the same way for the chat and the console"},
	{"internal/typeschema", levelWords, []string{"github.com/google/jsonschema-go"}, "Go types are described and decoded alike for tools and answers"},
	{"internal/tracecontext", levelWords, nil, "the trace context reaches hooks and servers without OpenTelemetry"},
	{"internal/otlptest", levelShared, []string{"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"}, "the tests of programs share a collector"},
	{"telemetry", levelHosts, []string{openTelemetry, "go.opentelemetry.io/contrib/bridges/otelslog"}, "OpenTelemetry is in this package and the one below, so that a program without them links none of it"},
	{"telemetry/otlp", levelAssembly, []string{openTelemetry, "google.golang.org/protobuf"}, "a program that has exporters of its own needs none of ours"},
	{"internal/label", levelWords, nil, "what a call is about is said alike wherever calls are listed"},
	{"internal/warmhook/...", levelWords, nil, "it runs before all other packages of the program are initialized, so it imports almost nothing"},
	{"internal/wholefile", levelWords, nil, "files that are there as a whole or not at all are written alike wherever one is"},
	{"internal/redact", levelWords, nil, "what looks like a secret is said once, for all texts that are kept"},
	{"internal/spill", levelWords, nil, "where the files of long results are is known to those that write and those that remove them"},
	{"internal/detach", levelWords, nil, "the runtime records how work ended that declared hooks leave behind, and no other program needs this"},
	{"internal/growthtest", levelWords, nil, "tests of every room measure growth alike"},
	{"hook/...", levelHook, nil, "the hook runtime knows nothing of agents and costs an embedder no dependency"},
	{".", levelBelay, []string{"github.com/google/jsonschema-go"}, "the loop imports no optional part; such parts arrive as an Extension or through an interface that the root declares"},
	{"provider/scripted", levelRooms, []string{"github.com/goccy/go-yaml"}, "the scripted model reads scripts and needs no network"},
	{"provider/anthropic", levelRooms, []string{"charm.land/catwalk"}, "one folder for each vendor, and no SDK"},
	{"provider/openai", levelRooms, []string{"charm.land/catwalk"}, "one folder for each vendor, and no SDK"},
	{"provider/gemini", levelRooms, []string{"charm.land/catwalk"}, "one folder for each vendor, and no SDK"},
	{"provider/internal/wire", levelShared, []string{"charm.land/catwalk"}, "the providers share how requests are sent and answers are read; it knows no vendor"},
	{"provider/internal/wiretest", levelHosts, nil, "the tests of the providers share helpers, and servers of providertest"},
	{"provider/providertest", levelRooms, nil, "the suite of the providers is for theirs too, and costs no dependency"},
	{"permit", levelRooms, []string{"github.com/bmatcuk/doublestar", "github.com/goccy/go-yaml", "golang.org/x/sys", "mvdan.cc/sh"}, "the floor reads shell, paths and addresses by itself, and knows no tool of another room; YAML is for the corpus of its tests"},
	{"sandbox", levelShared, []string{"golang.org/x/sys"}, "what holds programs is the kernel's: it takes its calls and nothing of agents"},
	{"audit", levelHook, nil, "the format of the chain is public, so that a program can check an export without a store"},
	{"policy", levelHook, nil, "settings of a turn are typed values and know nothing else"},
	{"internal/childturn", levelHook, nil, "the root, its subagents and hooks of other agents agree on keys of a context"},
	{"internal/strictjson", levelHook, []string{"github.com/google/jsonschema-go"}, "inputs of tools and answers of hooks are decoded alike"},
	{"internal/phasejson", levelShared, []string{"github.com/google/jsonschema-go"}, "phases as JSON, for whatever runs handlers outside Go"},
	{"skill", levelRooms, nil, "skills are files and text: what reads their frontmatter is shared"},
	{"declare", levelRooms, []string{"cel.dev/cel-go"}, "declared hooks are files, processes and addresses: expressions in them are CEL, and what reads YAML is shared"},
	{"declare/worker", levelShared, nil, "the programs of hooks carry no more than the phases and their types"},
	{"mcptool", levelRooms, []string{"github.com/google/jsonschema-go", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/oauth2"}, "MCP is spoken with the official SDK, whose types stay in it, and the SDK's logins have tokens of x/oauth2; schemas are checked as the root checks them"},
	{"webtool", levelRooms, []string{"github.com/JohannesKaufmann/html-to-markdown", "golang.org/x/net", "golang.org/x/text"}, "web pages become Markdown by a library: no other room needs its parser of HTML"},
	{"memory", levelRooms, []string{"modernc.org/sqlite"}, "memories are in a file of their own: one driver without cgo, and no other room"},
	{"space", levelHosts, nil, "a space has hooks, skills and agents: it puts their rooms together, and reads files by their means"},
	{"dialect", levelShared, nil, "names of other agents and of their tools are data, for whoever reads their files or speaks to them"},
	{"internal/vendorhook", levelVendors, nil, "the hooks of all vendors are read and answered alike: what differs, the folder of the vendor brings"},
	{"internal/vendorhook/vendorhooktest", levelVendors, nil, "the tests of the vendors ask real commands alike"},
	{"dialect/claude", levelHosts, []string{"github.com/bmatcuk/doublestar"}, "paths in permissions are patterns; files of Claude Code become rules, skills, agents and servers: it reads them with the rooms of each"},
	{"dialect/codex", levelHosts, nil, "one folder for each vendor"},
	{"dialect/gemini", levelHosts, nil, "one folder for each vendor"},
	{"dialect/guard", levelRooms, nil, "as a hook of other agents, Belay is asked through the phases and an Authorizer: the program brings hooks, floor and store"},
	{"subagent", levelRooms, nil, "a subagent is anything with a Run method: what it is made of, the program brings; what reads declarations is shared"},
	{"internal/frontmatter", levelShared, []string{"github.com/goccy/go-yaml"}, "frontmatter is read alike for skills and agents"},
	{"internal/listing", levelWords, nil, "skills and subagents are listed alike, within one budget"},
	{"internal/scan", levelWords, nil, "what counts as /name is said once, for directives and skills"},
	{"toolbox", levelRooms, nil, "the stock tools need the file system and a shell: the standard library does"},
	{"store/memstore", levelRooms, nil, "the reference store is plain Go"},
	{"store/storetest", levelRooms, nil, "the suite of the stores is for theirs too, and costs no dependency"},
	{"store/internal/sqltest", levelHosts, nil, "the tests of the SQL stores share fixtures, suites and a scripted model"},
	{"store/internal/...", levelShared, nil, "tables, queries and what is done with them are what the stores on SQL databases share; a driver is the store's own"},
	{"store/sqlite", levelRooms, []string{"github.com/pressly/goose/v3", "github.com/riverqueue/river/riverdriver", "modernc.org/sqlite"}, "one file, one driver without cgo; the job engine is chosen in internal/riverjobs"},
	{"store/postgres/...", levelRooms, []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", "github.com/riverqueue/river/riverdriver"}, "one server, one driver; the job engine is chosen in internal/riverjobs"},
	{"engine/internal/fleet", levelHosts, []string{"github.com/jackc/pgx/v5"}, "the tests of worker processes cut their connections on the server"},
	{"backtest", levelReplay, nil, "recorded sessions are replayed against hooks and a floor; which ones, the program says"},
	{"engine", levelHosts, nil, "who takes turns needs a store and agents, and knows none of either"},
	{"belaytest", levelHosts, nil, "the kit for users' own tests puts the scripted model and the reference store together, and costs no dependency of its own"},
	{"internal/probetest", levelShared, nil, "the tests of the test kits share a test that may fail, and nothing else"},
	{"internal/pgtest", levelShared, []string{"github.com/jackc/pgx/v5"}, "a server for tests is started and asked for databases, and knows no store"},
	{"internal/filetest", levelShared, nil, "a file for tests is made once and copied: what is in it, the test knows"},
	{"internal/crashtest", levelHosts, nil, "the kit that kills processes needs a store, and knows none"},
	{"internal/repotest", levelPrograms, nil, "the rules of the repository look at every package"},
	{"internal/looptest", levelPrograms, nil, "the behaviour of agents is tested with the test kits and stores that users have"},
	{"internal/killtest", levelPrograms, nil, "the tests that kill processes at random put everything together"},
	{"internal/recorded", levelShared, nil, "recorded calls are read alike by audits, tests of hooks and backtests"},
	{"internal/auditreport", levelRooms, nil, "questions about recorded sessions are answered alike for the command line, the API and the console"},
	{"internal/timeline", levelShared, nil, "drawing needs the records of the hook runtime and nothing else"},
	{"internal/riverjobs", levelShared, []string{"github.com/riverqueue/river", "modernc.org/sqlite"}, "the job engine is River, on whatever driver the store brings; SQLite is for its tests"},
	{"internal/netguard", levelWords, nil, "addresses are checked alike wherever one is connected to"},
	{"internal/proc", levelShared, nil, "child processes are the operating system's matter: the standard library does"},
	{"internal/chat", levelShared, []string{"charm.land", "github.com/charmbracelet", "github.com/muesli/cancelreader", "github.com/sahilm/fuzzy", "github.com/yuin/goldmark"}, "the chat draws what the runtime tells it, and knows neither stores nor providers"},
	{"cmd/...", levelPrograms, nil, "a command puts everything together"},
	{"examples/...", levelPrograms, nil, "an example is a program"},
	{"internal/gendocs", levelPrograms, nil, "the generator of the documentation is a program"},
	{benchmark, levelPrograms, nil, "the benchmark is a program"},
	{"internal/config", levelHosts, []string{"github.com/goccy/go-yaml"}, "settings are for all rooms: what they say about the floor is checked with its file and line"},
	{"internal/assembly", levelAssembly, []string{"golang.org/x/sys"}, "agents are made of settings once, for the command line and for programs that embed it; it knows no terminal"},
	{"host", levelEmbed, nil, "a program that embeds Belay gets what the command line has, behind few names"},
	{"internal/inspect", levelInspect, nil, "sessions, approvals, hooks and the rest are described once, for the command line and the server"},
	{"serve/api", levelShared, nil, "the server and its clients share the types of requests and responses, and clients carry no more than these"},
	{"client", levelRooms, nil, "a program that uses a server carries neither stores nor providers"},
	{"channel", levelHosts, nil, "what all channels share needs a store, and knows no service"},
	{"channel/internal/channeltest", levelEmbed, nil, "the tests of the channels share a store with approvals"},
	{"channel/slack", levelEmbed, []string{"github.com/coder/websocket"}, "one folder for each service, and no SDK; a WebSocket needs a library"},
	{"channel/telegram", levelEmbed, nil, "one folder for each service, and no SDK"},
	{"channel/webhook", levelEmbed, nil, "one folder for each service; calls are signed as those of declared hooks"},
	{"serve", levelServe, []string{"github.com/google/jsonschema-go", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/time"}, "the server offers what a host has; how agents are made, the host knows"},
	{"acp", levelServe, []string{"github.com/coder/acp-go-sdk"}, "editors are served what a host has, with the types of the protocol's SDK; how agents are made, the host knows"},
	{"acp/internal/jsonrpc", levelWords, nil, "the connection to an editor knows nothing of agents, and its protocol is another package's"},
	{"serve/console", levelEmbed, []string{"github.com/a-h/templ", "github.com/yuin/goldmark"}, "the pages use the API through package client, and nothing else of the server"},
	{loadGenerator, levelPrograms, []string{"github.com/jackc/pgx/v5"}, "what one machine holds is measured by a program"},
	{"internal/licenses", levelWords, nil, "the licences of dependencies are found alike for the docs and for releases"},
	{"internal/release", levelPrograms, nil, "the files of a release are made by a program"},
	{"internal/site", levelPrograms, nil, "the pages of the docs are made by a program"},
	{"internal/cross", levelPrograms, nil, "other platforms are checked by a program, without building for them"},
	{"internal/cli", levelPrograms, nil, "the command line puts everything together; cmd/belay only calls it"},
	{"internal/picture", levelPrograms, nil, "the picture of the README is drawn by a program"},
	{"internal/demo", levelPrograms, nil, "the guided tour shows everything"},
	{"internal/demo/whole", levelPrograms, nil, "the parts of the tour that take long to compile are apart"},
}

// openTelemetry is the prefix of the packages that only telemetry may import.
const openTelemetry = "go.opentelemetry.io/otel"

// benchmark is the program that measures the promised speed. It uses package testing, but
// is no test.
const benchmark = "internal/bench"

// loadGenerator is the program that measures what a machine holds, with a server of a test kit.
const loadGenerator = "internal/load"

// testLibraries may be imported by the tests of any package. Programs that embed Belay do
// not contain them.
var testLibraries = []string{
	"github.com/chromedp/cdproto",
	"github.com/chromedp/chromedp",
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// forbidden are imports that are not allowed, not even in tests, with what to use
// instead.
var forbidden = map[string]string{
	"C":                           "Belay builds with CGO_ENABLED=0 on every platform: use pure Go",
	"log":                         "use log/slog, with the stable keys phase, subscription, session and turn",
	"io/ioutil":                   "deprecated: use io and os",
	"math/rand":                   "use math/rand/v2, or crypto/rand for what must not be guessed",
	"html/template":               "a program that executes a template keeps all exported methods of all types, which makes it megabytes larger: use templ or fmt",
	"text/template":               "see html/template: use strings.NewReplacer or fmt",
	"github.com/pkg/errors":       `use errors and fmt.Errorf with %w`,
	"github.com/stretchr/testify": "use plain testing and go-cmp: a failure message states the rule",
	"golang.org/x/exp":            "unstable: use the standard library's slices, maps, cmp and iter",
	"gopkg.in/yaml.v2":            "use goccy/go-yaml: its strict errors point at the source line",
	"gopkg.in/yaml.v3":            "use goccy/go-yaml: its strict errors point at the source line",
}

func TestDepsEveryPackageHasAPlace(t *testing.T) {
	t.Parallel()
	dirs := map[string]bool{}
	for _, file := range goFiles(t, func(*goFile) bool { return true }) {
		dirs[file.dir()] = true
	}
	for dir := range dirs {
		if _, ok := roomOf(dir); !ok {
			t.Errorf("package %s has no place in the house: add a line to rooms in deps_test.go that says on which level it is and why", dir)
		}
	}
}

func TestDepsImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for _, file := range goFiles(t, func(*goFile) bool { return true }) {
		for _, spec := range file.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if problem := importProblem(file.dir(), imported, file.isTest); problem != "" {
				t.Errorf("%s: %s", file.at(spec.Pos()), problem)
			}
		}
	}
}

// importProblem returns what is wrong with an import of a package in directory dir, or "".
func importProblem(dir, imported string, isTest bool) string {
	for _, prefix := range slices.Sorted(maps.Keys(forbidden)) {
		// In the standard library, math/rand/v2 is another package than math/rand.
		// Outside the standard library, a prefix is a module and covers all its packages.
		if imported == prefix || !isStandard(prefix) && covers(prefix+"/...", imported) {
			return fmt.Sprintf("imports %s: %s", imported, forbidden[prefix])
		}
	}
	from, ok := roomOf(dir)
	if !ok {
		return "" // TestDepsEveryPackageHasAPlace reports this.
	}
	local, ok := inModule(imported)
	switch {
	case !ok && isStandard(imported):
		if imported == "testing" && !isTest && !isTestKit(dir) && dir != benchmark {
			return "imports testing, which brings its flags into the user's program: move the code into a test, or into a package whose name ends in test"
		}
		return ""
	case !ok:
		allowed := from.thirdParty
		if isTest {
			allowed = slices.Concat(allowed, testLibraries)
		}
		if from.level == levelPrograms || slices.ContainsFunc(allowed, func(prefix string) bool { return covers(prefix+"/...", imported) }) {
			return ""
		}
		return fmt.Sprintf("%s may not import %s: %s; if it must, add it to the room's thirdParty in deps_test.go and say why in the commit", spoken(dir), imported, from.why)
	case isTest:
		// Go compiles an external test package separately, so importing a higher level
		// makes no cycle.
		return ""
	case isTestKit(local) && !isTestKit(dir) && dir != benchmark && dir != loadGenerator:
		return fmt.Sprintf("%s may not import %s outside its tests: a test kit is for tests", dir, local)
	}
	to, ok := roomOf(local)
	dir, local = spoken(dir), spoken(local)
	switch {
	case !ok:
		return "" // TestDepsEveryPackageHasAPlace reports this too.
	case from.pattern == to.pattern || from.level > to.level || from.level == levelPrograms:
		return ""
	case from.level == to.level:
		return fmt.Sprintf("%s may not import %s: both are on one level; move what they share into a level below", dir, local)
	default:
		return fmt.Sprintf("%s may not import %s, which is above it: %s; declare an interface below and implement it above", dir, local, from.why)
	}
}

// roomOf returns the room with the longest pattern that covers the directory.
func roomOf(dir string) (room, bool) {
	var found room
	for _, r := range rooms {
		if covers(r.pattern, dir) && len(r.pattern) > len(found.pattern) {
			found = r
		}
	}
	return found, found.pattern != ""
}

// covers reports whether a pattern, "a/b" or "a/...", covers a path.
func covers(pattern, name string) bool {
	prefix, tree := strings.CutSuffix(pattern, "/...")
	return name == prefix || tree && strings.HasPrefix(name, prefix+"/")
}

// inModule returns the directory of an import path of this module.
func inModule(imported string) (string, bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// spoken returns the name of a directory for messages.
func spoken(dir string) string {
	if dir == "." {
		return "the root package"
	}
	return dir
}

// isStandard reports whether an import path is in the standard library: its first element
// has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// isTestKit reports whether a directory holds a test kit, such as hooktest. The name of a
// test kit ends in "test".
func isTestKit(dir string) bool {
	return strings.HasSuffix(path.Base(dir), "test") && dir != "backtest" // it tests policies, not code
}

func TestDepsRule(t *testing.T) {
	t.Parallel()
	if r, ok := roomOf("nowhere"); ok {
		t.Errorf("roomOf(nowhere) = %+v: a package that no line covers must have no room", r)
	}
	for _, test := range []struct {
		rule     string
		dir      string
		imported string
		isTest   bool
		want     string // part of the problem; "" if there is none
	}{
		{"the hook runtime imports the standard library", "hook", "context", false, ""},
		{"the hook runtime may be split into packages of its own", "hook", modulePath + "/hook/ring", false, ""},
		{"the hook runtime does not import the root", "hook", modulePath, false, "which is above it"},
		{"the hook runtime has no third-party dependency", "hook", "github.com/google/jsonschema-go/jsonschema", false, "may not import"},
		{"a test kit obeys the rules of its room", "hook/hooktest", "github.com/google/go-cmp/cmp", false, "may not import"},
		{"a test may use a test library", "hook", "pgregory.net/rapid", true, ""},
		{"a test may not use just any library", "hook", "github.com/spf13/cobra", true, "may not import"},
		{"code outside tests does not import a test kit", "hook", modulePath + "/hook/hooktest", false, "a test kit is for tests"},
		{"a test kit imports what it tests", "hook/hooktest", modulePath + "/hook", false, ""},
		{"only tests and test kits import testing", "hook", "testing", false, "imports testing"},
		{"a test kit imports testing", "hook/hooktest", "testing", false, ""},
		{"the benchmark imports testing", benchmark, "testing", false, ""},
		{"the root imports the hook runtime", ".", modulePath + "/hook", false, ""},
		{"the root imports the library it is allowed", ".", "github.com/google/jsonschema-go/jsonschema", false, ""},
		{"the root imports no program", ".", modulePath + "/cmd/belay", false, "which is above it"},
		{"a name that only begins like an allowed library is another library", ".", "github.com/google/jsonschema-gopher", false, "may not import"},
		{"a shared package does not look up", "internal/timeline", modulePath + "/internal/demo", false, "which is above it"},
		{"a command imports everything", "cmd/belay", modulePath + "/internal/gendocs", false, ""},
		{"cgo is refused", "hook", "C", false, "CGO_ENABLED=0"},
		{"a forbidden import is refused in tests too", "hook", "math/rand", true, "math/rand/v2"},
		{"a replacement is not mistaken for what it replaces", "hook", "math/rand/v2", false, ""},
		{"log/slog is not log", "hook", "log/slog", false, ""},
		{"packages of a forbidden module are refused", "cmd/belay", "github.com/stretchr/testify/require", true, "go-cmp"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := importProblem(test.dir, test.imported, test.isTest)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("importProblem(%q, %q, %t) = %q, want %q in it", test.dir, test.imported, test.isTest, got, test.want)
			}
		})
	}
}
