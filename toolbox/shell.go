package toolbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/proc"
)

const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	// maxOutput is how many bytes of a command's output are kept. The model sees less,
	// because Belay writes a long result to a file.
	maxOutput = 1 << 20
	// maxShown is how many characters of the output the model sees.
	maxShown = 30_000
)

// ShellOptions are the settings of [Shell].
type ShellOptions struct {
	// Dir is the working directory of commands. Defaults to the working directory
	// of the process, and in [New] to the project.
	Dir string
	// Shell is the program that runs commands. It gets the arguments -c and the command.
	// Defaults to bash if it is installed, or else to sh.
	Shell string
	// Env is the environment of commands, as KEY=value. By default, commands get the
	// environment of the process without secrets, and with PAGER, GIT_PAGER,
	// GIT_TERMINAL_PROMPT and TERM set so that no program waits for a person.
	//
	// A variable counts as a secret if its value contains a URL with a password. It also
	// counts as a secret if its name, split into words, has the word PAT, or a word that
	// ends in KEY, TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE, PASS, PWD, CREDENTIAL,
	// CRED, AUTH, AUTHORIZATION, COOKIE or DSN. The word may be in the plural or have a
	// number. PWD, OLDPWD, SSH_AUTH_SOCK and the word ASKPASS are exceptions.
	//
	// Variables that change how a shell starts, such as BASH_ENV and exported functions,
	// are always removed, even from Env. With them, a permission check could not know
	// what a command means.
	Env []string
	// Keep lists variables that commands get although they look like secrets. An entry is
	// a name or a pattern for path.Match, such as GITHUB_TOKEN or NPM_*. Defaults to
	// none.
	Keep []string
	// Timeout is the default timeout of a command. Defaults to 2 minutes.
	Timeout time.Duration
	// MaxTimeout is the longest timeout that the model can set for a command. Defaults to
	// 10 minutes, or to Timeout if that is longer.
	MaxTimeout time.Duration
	// MaxOutput is how many bytes of output are kept. Of a longer output, half of
	// MaxOutput is kept from the beginning and half from the end. Defaults to 1 MiB.
	MaxOutput int
	// Confine puts a command into a sandbox. It is called before each command, and may
	// change the command line. If it returns an error, the command does not run. The
	// error is then the result, with class denied. By default, commands run without a
	// sandbox.
	Confine func(ctx context.Context, call *belay.Invocation, run *ShellRun) error
}

// ShellRun is a command that is about to run.
type ShellRun struct {
	// Argv is the command line: the shell, -c and the command.
	Argv []string
	// Env is the environment, as KEY=value. If a variable occurs twice, the last value
	// applies.
	Env []string
	// Note is added after the output if the command fails. It tells the model about
	// restrictions. Defaults to empty.
	Note string
	// ReadOnly says that the command cannot change the project, so that [Snapshots] need not
	// look for changes. Defaults to false.
	ReadOnly bool
	// Changes are paths that the command is known to change, relative to the project or
	// absolute. They matter for [Snapshots] of large projects only. Defaults to none.
	Changes []string
	// Settle is called when the command has ended for any reason. Its text is added after
	// the output. May be nil.
	Settle func() string
}

type shellInput struct {
	Command        string `json:"command"`
	TimeoutSeconds int    `json:"timeout_seconds"`
	Description    string `json:"description"`
	Background     bool   `json:"background"`
}

// Shell makes the tool that runs commands. Each command runs in its own process group,
// without a terminal and with empty input. At the timeout, or when the turn is aborted,
// the group gets SIGTERM, and two seconds later SIGKILL. A background process does not
// delay the result, and is not killed. If there is no shell, for example on Windows,
// calls fail as unavailable.
//
// If the agent's process is killed while a command runs, Linux kills the shell too, but
// not the programs that the shell has started. On other systems, all of them continue.
func Shell(opts *ShellOptions) belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newShell(opts, &files{}).tool()
}

func newShell(opts *ShellOptions, of *files) *shell {
	s := &shell{project: of.project, snapshots: of.snapshots, background: of.background}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Timeout <= 0 {
		s.opts.Timeout = defaultTimeout
	}
	if s.opts.MaxTimeout <= 0 {
		s.opts.MaxTimeout = max(maxTimeout, s.opts.Timeout)
	}
	if s.opts.MaxOutput <= 0 {
		s.opts.MaxOutput = maxOutput
	}
	if s.opts.Shell == "" {
		s.opts.Shell = "sh"
		if _, err := exec.LookPath("bash"); err == nil {
			s.opts.Shell = "bash"
		}
	}
	return s
}

type shell struct {
	opts       ShellOptions
	project    *place      // nil for a shell without file tools
	snapshots  *Snapshots  // nil for none
	background *Background // nil for none
}

func (s *shell) tool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	background, hint := "", "Background processes must not write to the output: redirect it to a file. "
	if s.background != nil {
		background = `,
			"background": {"type": "boolean", "description": "start it and do not wait for its end, for servers and long work; shell_output returns its output"}`
		hint = "To run a server or long work, set background instead of writing &. "
	}
	return newTool("shell", fmt.Sprintf("Runs a command with %s -c in the project's directory and returns its output, standard error included. "+
		"Each command starts in a new shell: cd and variables do not persist. Nobody can answer prompts. A command that exceeds its timeout is killed. "+
		hint+"Variables that look like secrets are removed.", path.Base(s.opts.Shell)),
		fmt.Sprintf(`{
		"type": "object", "additionalProperties": false, "required": ["command"], "properties": {
			"command": {"type": "string", "minLength": 1},
			"timeout_seconds": {"type": "integer", "minimum": 1, "maximum": %d, "description": "how long it may take; default %d"},
			"description": {"type": "string", "description": "what the command is for, in a few words, for the user"}%s
		}}`, max(int(s.opts.MaxTimeout/time.Second), 1), int(s.opts.Timeout/time.Second), background),
		belay.ToolTraits{Serial: true, NeedsAuthorizer: true, Timeout: s.opts.MaxTimeout + time.Minute, MaxResult: maxShown}, s.run)
}

// errTimeIsUp is the cause of the context when a command times out.
var errTimeIsUp = errors.New("time is up")

func (s *shell) run(ctx context.Context, call *belay.Invocation, in *shellInput) (belay.Result, error) {
	if strings.ContainsRune(in.Command, 0) {
		return belay.Result{}, failf(belay.ClassInvalid, "The command contains a zero byte.")
	}
	timeout := s.opts.Timeout
	if in.TimeoutSeconds > 0 {
		timeout = min(time.Duration(in.TimeoutSeconds)*time.Second, s.opts.MaxTimeout)
	}
	run := &ShellRun{Argv: []string{s.opts.Shell, "-c", in.Command}, Env: slices.Clip(s.environment())}
	if s.opts.Confine != nil {
		if err := s.opts.Confine(ctx, call, run); err != nil {
			return belay.Result{}, failf(belay.ClassDenied, "The command was not run: %v", err)
		}
	}
	if in.Background && s.background != nil {
		return s.inBackground(ctx, call, in, run)
	}
	ended := s.snapshots.around(ctx, call, s.project, run)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeIsUp)
	defer cancel()
	output := proc.NewWindow(s.opts.MaxOutput)
	live := newLiveOutput(output, call)
	began := time.Now()
	exit, err := proc.Run(ctx, &proc.Command{Argv: run.Argv, Dir: s.opts.Dir, Env: run.Env, Stdout: live, Merged: true})
	live.stop()
	took := time.Since(began)
	ended()
	settled := ""
	if run.Settle != nil {
		settled = run.Settle()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return belay.Result{}, context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return belay.Result{}, failf(belay.ClassUnavailable, "There is no %s on this machine: commands cannot be run.", path.Base(s.opts.Shell))
	case err != nil:
		return belay.Result{}, failf(belay.ClassFailed, "The command could not be started: %v.", err)
	}
	ran := &ran{exit: exit, timeout: timeout, note: run.Note, settled: settled, view: ShellView{
		Kind: "shell", Command: in.Command, Description: in.Description,
		ExitCode: exit.Code, Milliseconds: took.Milliseconds(), LeftRunning: exit.Held,
	}}
	return ran.result(output)
}

// ran describes a command that has ended.
type ran struct {
	exit    proc.Exit
	timeout time.Duration
	note    string // added if the command failed, see ShellRun.Note
	settled string
	view    ShellView
}

// result returns the result of a command. The text does not contain the duration. So
// repeated calls with the same outcome have the same text, and Belay can detect a loop.
func (r *ran) result(output *proc.Window) (belay.Result, error) {
	head, forgotten, tail := output.Ends()
	r.view.Bytes, r.view.Forgotten = int64(len(head))+forgotten+int64(len(tail)), forgotten
	if r.exit.Signal != nil {
		r.view.Signal = r.exit.Signal.String()
	}
	var notes []string
	var class belay.ResultClass
	switch {
	case errors.Is(r.exit.Stopped, errTimeIsUp):
		class, r.view.TimedOut = belay.ClassTimeout, true
		notes = append(notes, fmt.Sprintf("the command was killed after its timeout of %s; what it did before is not undone", r.timeout))
	case r.exit.Stopped != nil:
		class, r.view.Aborted = belay.ClassAborted, true
		notes = append(notes, "the command was killed because the turn was aborted; what it did before is not undone")
	case r.exit.Signal != nil:
		class = belay.ClassFailed
		notes = append(notes, "the command was killed by a signal: "+r.view.Signal)
	case r.exit.Code != 0:
		class = belay.ClassFailed
		notes = append(notes, fmt.Sprintf("exit code %d", r.exit.Code))
	}
	if class == belay.ClassFailed && r.note != "" {
		notes = append(notes, r.note)
	}
	if r.settled != "" {
		notes = append(notes, r.settled)
	}
	if r.exit.Held && r.exit.Stopped == nil {
		notes = append(notes, "a background process is still running; its output is lost unless it is redirected to a file")
	}
	text := joinEnds(head, forgotten, tail)
	if text == "" && len(notes) == 0 {
		text = "[no output]"
	}
	if len(notes) > 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += "[" + strings.Join(notes, "] [") + "]"
	}
	result, err := answer(text, r.view)
	result.IsError, result.Class = class != "", class
	return result, err
}

// joinEnds joins the kept beginning and the kept end of an output.
func joinEnds(head []byte, forgotten int64, tail []byte) string {
	if forgotten == 0 {
		return strings.ToValidUTF8(string(head)+string(tail), "\ufffd")
	}
	head = cutEnd(head, len(head)-1) // the end may be half a character
	for i := 0; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return strings.ToValidUTF8(string(head), "\ufffd") +
		fmt.Sprintf("\n\n[... %s left out here ...]\n\n", size(forgotten)) +
		strings.ToValidUTF8(string(tail), "\ufffd")
}

// quiet are variables that keep programs from waiting for a person.
var quiet = []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb"}

func (s *shell) environment() []string {
	if s.opts.Env != nil {
		return slices.DeleteFunc(slices.Clone(s.opts.Env), startsShells)
	}
	var env []string
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if !startsShells(variable) && (!looksSecret(name, value) || s.keeps(name)) {
			env = append(env, variable)
		}
	}
	return append(env, quiet...)
}

// startsShells reports whether a variable (KEY=value) makes a shell run something before
// the command, or changes the meaning of the command.
func startsShells(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	switch name {
	case "BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "BASH_COMPAT", "CDPATH", "GLOBIGNORE", "EXECIGNORE", "IFS", "PS4", "POSIXLY_CORRECT":
		return true
	default:
		return strings.HasPrefix(name, "BASH_FUNC_")
	}
}

func (s *shell) keeps(name string) bool {
	for _, pattern := range s.opts.Keep {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
