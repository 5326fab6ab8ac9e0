package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/mcptool"
)

// awaitCalled waits for MCP servers that are still starting, if the open calls of the
// session need their tools. It waits at most for the start timeout of these servers.
func (a *app) awaitCalled(ctx context.Context, w *work) error {
	if w.session == nil || w.session.State.Turn == nil || w.Servers == nil {
		return nil
	}
	called, err := openCallTools(ctx, w.store, w.session)
	if err != nil {
		return err
	}
	waits := func(all []mcptool.Status) (names []string) {
		for i := range all {
			if s := &all[i]; s.State == mcptool.StateStarting && slices.ContainsFunc(called, s.Server.Has) {
				names = append(names, oneLine(s.Server.Name))
			}
		}
		return names
	}
	names := waits(w.Servers.Servers())
	if len(names) == 0 {
		return nil
	}
	a.remarkf("%s", a.onErr.dim("waiting for MCP server "+strings.Join(names, ", ")+", whose tools the turn needs"))
	return w.Servers.Await(ctx, func(all []mcptool.Status) bool { return len(waits(all)) == 0 })
}

// openCallTools returns the tools that the last model response of the open turn calls.
func openCallTools(ctx context.Context, store belay.Store, session *belay.SessionInfo) ([]string, error) {
	var tools []string
	for m, err := range store.Read(ctx, session.ID, 0) {
		if err != nil {
			return nil, err
		}
		if calls := m.Calls(); len(calls) > 0 && m.Turn == session.State.Turn.ID {
			tools = tools[:0]
			for _, c := range calls {
				tools = append(tools, c.Tool)
			}
		}
	}
	return tools, nil
}

// withoutTools returns the error for a turn that cannot be resumed because tools are
// missing. The error names the reasons and what to do.
func (a *app) withoutTools(w *work, session string, missing *belay.MissingToolError) error {
	var reasons []string
	told := make(map[string]bool)
	for _, tool := range missing.Tools {
		if line := why(w.Servers, tool); !told[line] {
			told[line] = true
			reasons = append(reasons, line)
		}
	}
	return &exitError{
		code: exitFailed,
		err:  fmt.Errorf("session %s: the turn cannot be resumed here, because tools that it calls are missing: %s", session, strings.Join(reasons, "; ")),
		hint: "resume it when they are available: belay resume " + session + a.mcpFlags() + ", or abandon the turn: belay resume " + session + " --abandon",
	}
}

// why returns the name of a missing tool, with the reason in brackets if it is known.
func why(servers *mcptool.Extension, tool string) string {
	if servers != nil {
		for _, s := range servers.Servers() {
			if !s.Server.Has(tool) {
				continue
			}
			if line := assembly.NotReady(&s); line != "" {
				return tool + " (" + line + ")"
			}
			return fmt.Sprintf("%s (mcp server %s has no such tool now)", tool, oneLine(s.Server.Name))
		}
	}
	if server, _, ok := mcptool.SplitName(tool); ok {
		return fmt.Sprintf("%s (no MCP server %s runs here: name its file with --mcp FILE)", tool, oneLine(server))
	}
	return tool
}

// mcpFlags returns the --mcp flags of this command, to repeat them in a suggested command.
func (a *app) mcpFlags() string {
	var b strings.Builder
	for _, file := range a.mcp {
		b.WriteString(" --mcp " + quoted(file))
	}
	return b.String()
}

// quoted quotes a word for a shell, if necessary.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// lacking reports whether err means that a turn cannot be resumed because tools are
// missing.
func lacking(err error) (*belay.MissingToolError, bool) {
	return errors.AsType[*belay.MissingToolError](err)
}

// goOnAs makes the settings use the model of the open turn, unless --model names another.
// It prints a remark if the mode of the turn changes, or differs from the settings.
func (a *app) goOnAs(ctx context.Context, settings *config.Loaded, info *belay.SessionInfo) error {
	open := info.State.Turn
	if open == nil {
		return nil
	}
	if name, ok := assembly.TurnModel.Value(open.Policy); ok && settings.From("model").Kind != "flag" {
		if err := settings.Recall("model", "turn "+open.ID, name); err != nil {
			return usage("session %s: %w", info.ID, err)
		}
	}
	had, _ := assembly.TurnMode.Value(open.Policy)
	switch now := a.assembler().ModeOfTurn(ctx, settings, open.Policy); {
	case had == "":
	case had != now.Name:
		a.remarkf("%s", a.onErr.yellow(fmt.Sprintf("mode: the turn began in %s and continues in %s (%s)", had, now.Name, settings.From("mode"))))
	case had != settings.Mode:
		a.remarkf("%s", a.onErr.dim(fmt.Sprintf("mode: %s, as when the turn began", had)))
	}
	return nil
}
