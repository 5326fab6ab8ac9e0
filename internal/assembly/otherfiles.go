package assembly

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
)

// An OtherFile is a file that was written for another coding agent, and what Belay does with
// it.
type OtherFile struct {
	// Path is the file, in the form of [ShownPath].
	Path string
	// Use says what Belay does with the file.
	Use string
	// Partly means that a part of the file has no effect, or another effect than its author
	// expects.
	Partly bool
}

// String returns the path and the use.
func (f OtherFile) String() string { return f.Path + ": " + f.Use }

// OtherFiles returns every file of another coding agent that was found, and what Belay does
// with it. Hooks are not included: [Unheeded] reports them.
func (a *Assembler) OtherFiles(ctx context.Context, s *config.Loaded) []OtherFile {
	return slices.Concat(instructionUses(ctx, s), settingsUses(ctx, s), agentUses(s), skillUses(ctx, s), serverUses(s), pluginUses(ctx, s), unreadUses(s))
}

// switchedOff is the use of a file whose kind the settings switch off.
func switchedOff(s *config.Loaded, kind string) string {
	return fmt.Sprintf("not used: other_agents.ignore has %q or all (%s)", kind, s.From("other_agents.ignore"))
}

// instructionUses reports the files with instructions.
func instructionUses(ctx context.Context, s *config.Loaded) []OtherFile {
	var uses []OtherFile
	for _, one := range claude.ReadInstructions(claudeFiles(ctx, s, nil)) {
		f := OtherFile{Path: ShownPath(s, one.Path), Use: switchedOff(s, "instructions")}
		if s.OtherAgents.Uses("instructions") {
			f.Use, f.Partly = instructionUse(s, &one), len(one.Notes) > 0 && one.Text != ""
		}
		uses = append(uses, f)
	}
	return uses
}

func instructionUse(s *config.Loaded, one *claude.Instruction) string {
	parts := []string{}
	if one.Text != "" {
		parts = append(parts, fmt.Sprintf("instructions for the model, about %s", visible.Counted(tokensOf(one.Text), "token")))
	}
	if len(one.Imports) > 0 {
		var names []string
		for _, file := range one.Imports {
			names = append(names, ShownPath(s, file))
		}
		parts = append(parts, "imports "+strings.Join(names, ", "))
	}
	return cmp.Or(strings.Join(append(parts, one.Notes...), "; "), "it is empty")
}

// tokensOf estimates the tokens of a text, as the context does.
func tokensOf(text string) int { return (len([]rune(text)) + 3) / 4 }

// ReportOtherFiles sends a notice about each file of another coding agent, and about more.
func (a *Assembler) ReportOtherFiles(ctx context.Context, s *config.Loaded, more ...OtherFile) {
	for _, f := range append(a.OtherFiles(ctx, s), more...) {
		if f.Partly {
			a.warn(f.String())
		} else {
			a.remark(visible.All(visible.OneLine("found " + f.String())))
		}
	}
}

// harmless are fields of skills that only change how another agent lists them.
var harmless = []string{"argument-hint", "author", "category", "color", "version"}

// noteworthy reports whether notes are more than that another model is used, or that harmless
// fields are ignored.
func noteworthy(notes []string) bool {
	return slices.ContainsFunc(notes, func(note string) bool {
		return !strings.HasPrefix(note, "model: ") && !slices.ContainsFunc(harmless, func(key string) bool {
			return strings.HasPrefix(note, fmt.Sprintf("Belay ignores the unknown field %q", key))
		})
	})
}
