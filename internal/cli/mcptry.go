package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/toolbox"
	"github.com/spf13/cobra"
)

func (a *app) tryMCPCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "try SERVER [TOOL [JSON]]",
		Short: "Start one MCP server, show what it offers, and call a tool",
		Long: `Starts one MCP server as an agent would, and prints its instructions, tools, resources and prompts. Standard error and log messages
of the server are printed as they come. With TOOL it calls the tool with the input JSON. The floor checks the call as in a turn: it may
ask for your approval, or deny the call. TOOL is the server's name of the tool, or the agent's name.

If the server does not start, the command says why, and what to do.`,
		Example: `  belay mcp try tickets
  belay mcp try tickets search '{"text": "login"}'`,
		Args:              arguments(1, 3, "name the SERVER, and if you want a TOOL and its input as JSON: `belay mcp list` lists them"),
		ValidArgsFunction: a.completeMCP,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tryMCP(cmd.Context(), args, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve the call if the floor asks; a denial stays a denial")
	return cmd
}

func (a *app) tryMCP(ctx context.Context, args []string, yes bool) (err error) {
	settings, server, err := a.findMCP(ctx, args[0])
	if err != nil {
		return err
	}
	server.Disabled = false
	a.remarkf("%s", a.onErr.dim("starting "+oneLine(startedAs(server))))
	e, err := a.assembler().TryMCP(ctx, settings, *server, starting, slog.New(&serverLog{a: a}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	status := e.Servers()[0]
	if status.State != mcptool.StateReady {
		return notStarted(server, &status)
	}
	floor, err := a.assembler().NewFloor(ctx, settings, assembly.SpillDir(settings))
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return a.showMCP(ctx, floor, e, &status)
	}
	input := "{}"
	if len(args) == 3 {
		input = args[2]
	}
	return a.callMCP(ctx, settings, floor, e, &status, args[1], input, yes)
}

// startedAs describes how a server is started.
func startedAs(s *mcptool.Server) string {
	if s.URL != "" {
		return s.URL
	}
	text := strings.Join(append([]string{s.Command}, s.Args...), " ")
	if s.Dir != "" {
		text += " (in " + s.Dir + ")"
	}
	return text
}

// notStarted returns the error for a server that does not start, with what to do.
func notStarted(s *mcptool.Server, status *mcptool.Status) error {
	why := status.Err
	if why == nil {
		why = errors.New("it did not become ready in time: a longer time can be set with \"start\" in " + s.File)
	}
	hint := fmt.Sprintf("it is declared in %s:%d", s.File, s.Line)
	switch text := why.Error(); {
	case s.Command != "" && notInPath(s.Command):
		hint += fmt.Sprintf(". The program %s was not found: install it, or write its whole path in \"command\"", s.Command)
	case strings.Contains(text, "exit code 127"), strings.Contains(text, "exit code 126"):
		hint += ". The program started another program that was not found or may not run: check \"args\""
	case s.Prepare != nil && s.Command != "":
		hint += ". Servers of projects and spaces run in the sandbox, and have no network unless the place has the grant network: `belay trust --help`"
	case s.Command != "":
		hint += ". The program gets only a few variables of your environment: list the others under \"env\""
	case strings.Contains(text, "belay mcp login"):
	case s.URL != "":
		hint += ". Check the url, and with a proxy or a private address the settings network.proxy and network.private_hosts"
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("mcp server %s does not start: %s", oneLine(s.Name), oneLine(why.Error())), hint: oneLine(hint)}
}

func notInPath(program string) bool {
	_, err := exec.LookPath(program)
	return err != nil
}

// showMCP prints what a server offers.
func (a *app) showMCP(ctx context.Context, floor *assembly.Floor, e *mcptool.Extension, s *mcptool.Status) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", oneLine(s.Server.Name), oneLine(strings.TrimSpace(s.Title+" "+s.Version)))
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	if s.Instructions != "" {
		section("INSTRUCTIONS", strings.Split(visible.All(s.Instructions), "\n"))
	}
	var tools, resources, prompts []string
	line := mcpLineOf(ctx, floor, s)
	for i := range line.Tools {
		t := &line.Tools[i]
		text := fmt.Sprintf("%s (zone %d %s", t.Name, t.Zone, permit.Zone(t.Zone))
		if hints := t.hints(); hints != "-" {
			text += ", " + hints
		}
		tools = append(tools, oneLine(text+"): "+short(oneLine(t.Description), max(a.width-40, 40))))
	}
	section("TOOLS", tools)
	found, err := e.Resources(ctx, s.Server.Name)
	if err != nil {
		a.remarkf("%s", a.onErr.yellow(oneLine(err.Error())))
	}
	for _, r := range found {
		resources = append(resources, oneLine("@"+s.Server.Name+":"+r.String()))
	}
	section("RESOURCES (name one in a message to add it)", resources)
	offered, err := e.Prompts(ctx, s.Server.Name)
	if err != nil {
		a.remarkf("%s", a.onErr.yellow(oneLine(err.Error())))
	}
	for _, p := range offered {
		prompts = append(prompts, oneLine("/"+s.Server.Name+":"+p.String()))
	}
	section("PROMPTS (type one in a message to use it)", prompts)
	if _, err := fmt.Fprint(a.out, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	a.tellMCP(s)
	return nil
}

// callMCP calls a tool as the model of an agent would.
func (a *app) callMCP(ctx context.Context, settings *config.Loaded, floor *assembly.Floor, e *mcptool.Extension, s *mcptool.Status, name, input string, yes bool) error {
	var names []string
	tool := ""
	for _, t := range s.Tools {
		if t.Original == name || t.Name == name {
			tool = t.Name
		}
		names = append(names, t.Original)
	}
	if tool == "" {
		return usage("mcp server %s has no tool %q%s: `belay mcp try %s` lists them", oneLine(s.Server.Name), name, near.Hint(name, names), oneLine(s.Server.Name))
	}
	if !json.Valid([]byte(input)) {
		return usage("the input of %s is not JSON: write it in single quotes, for example '{\"text\": \"login\"}'", oneLine(name))
	}
	opts := &belay.Options{Name: assembly.MainAgent, Extensions: []belay.Extension{e.Shared()}, Authorizer: floor, SpillDir: assembly.SpillDir(settings), OnAsk: belay.AskDeny}
	p := newPrinter(a)
	switch {
	case yes:
		opts.OnAsk, opts.Approver = belay.AskWait, toolbox.Answering(who(), terminalAsker{p}, allowing{})
	case a.inTerminal && a.errTerminal:
		advise := func(ctx context.Context, q belay.Question) chat.Advice {
			advice := adviceOf(ctx, settings, floor, nil, q)
			advice.Pattern = "" // the agent ends with this call
			return advice
		}
		opts.OnAsk, opts.Approver = belay.AskWait, toolbox.Answering(who(), terminalAsker{p}, approver{p, advise})
	}
	if a.inTerminal && a.errTerminal {
		opts.Asker = terminalAsker{p}
	}
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: tool, Input: input}}}, {Text: "done"}}, nil)
	agent, err := belay.New(model, opts)
	if err != nil {
		return fmt.Errorf("try: %w", err)
	}
	defer func() { _ = agent.Close(context.WithoutCancel(ctx)) }() // the servers belong to e
	session := agent.Session("try")
	if _, err := session.Turn(ctx, "try"); err != nil {
		return fmt.Errorf("try: %w", err)
	}
	for m, err := range session.Messages(ctx) {
		if err != nil {
			return fmt.Errorf("try: %w", err)
		}
		for _, part := range m.Parts {
			if part.Result != nil {
				return a.showResult(part.Result, yes)
			}
		}
	}
	return errors.New("try: the call has no result")
}

// showResult prints the result of a call.
func (a *app) showResult(r *belay.ResultPart, yes bool) error {
	text := visible.All(r.Text)
	if r.IsError {
		hint := ""
		if r.Class == belay.ClassDenied && !yes {
			hint = "run the command in a terminal to be asked, or use --yes; permit.tools in belay.yaml says what a tool does"
		}
		return &exitError{code: exitFailed, err: errors.New(strings.TrimSpace(text)), hint: hint}
	}
	for _, m := range r.Media {
		text += fmt.Sprintf("\n[%s, %d bytes]", visible.OneLine(m.MIME), len(m.Data))
	}
	if _, err := fmt.Fprintln(a.out, strings.TrimSpace(text)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// allowing approves every call that the floor asks about.
type allowing struct{}

func (allowing) Approve(context.Context, belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: true, By: who(), Reason: "--yes"}, nil
}

// serverLog prints what a server writes to standard error, and its log messages.
type serverLog struct{ a *app }

func (*serverLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *serverLog) Handle(_ context.Context, r slog.Record) error {
	var text, logger string
	r.Attrs(func(at slog.Attr) bool {
		switch at.Key {
		case "line", "message":
			text = at.Value.String()
		case "logger":
			logger = at.Value.String()
		}
		return true
	})
	switch r.Message {
	case "mcp server stderr":
		l.a.remarkf("%s", l.a.onErr.dim("stderr: "+oneLine(text)))
	case "mcp server log":
		l.a.remarkf("%s", l.a.onErr.dim(oneLine(strings.TrimSpace("log "+strings.ToLower(r.Level.String())+" "+logger)+": "+text)))
	}
	return nil
}

func (l *serverLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *serverLog) WithGroup(string) slog.Handler      { return l }
