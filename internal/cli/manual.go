package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Manual returns the files that a package of Belay installs beside the program: the completion scripts, and a man page for
// each command. A key is a file name such as "man/belay-run.1". The date is shown in the man pages.
func Manual(version string, date time.Time) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, shell := range map[string]string{"belay.bash": "bash", "_belay": "zsh", "belay.fish": "fish", "belay.ps1": "powershell"} {
		var script bytes.Buffer
		root := newApp().root()
		root.SetOut(&script)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil {
			return nil, fmt.Errorf("completion for %s: %w", shell, err)
		}
		files["completions/"+name] = script.Bytes()
	}
	root := newApp().root()
	root.InitDefaultHelpCmd()
	addPages(files, root, version, date)
	return files, nil
}

// addPages adds the man page of a command and of its subcommands.
func addPages(files map[string][]byte, cmd *cobra.Command, version string, date time.Time) {
	if cmd.Hidden {
		return
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	files["man/"+pageName(cmd)+".1"] = manPage(cmd, version, date)
	for _, sub := range cmd.Commands() {
		addPages(files, sub, version, date)
	}
}

// pageName returns the name of a command's man page: belay-hooks-plan for "belay hooks plan".
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the man page of one command, in the macros of man(7).
func manPage(cmd *cobra.Command, version string, date time.Time) []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	name := pageName(cmd)
	line(`.TH %s 1 %s "belay %s" "Belay"`, roff(strings.ToUpper(name)), date.UTC().Format(time.DateOnly), roff(version))
	line(".SH NAME\n%s \\- %s", roff(name), roff(cmd.Short))
	line(".SH SYNOPSIS\n.B %s", roff(cmd.UseLine()))
	if cmd.Long != "" {
		line(".SH DESCRIPTION")
		for i, paragraph := range strings.Split(paragraphs(cmd.Long), "\n\n") {
			if i > 0 {
				line(".PP")
			}
			line("%s", roff(paragraph))
		}
	}
	options(&b, "OPTIONS", cmd.NonInheritedFlags())
	options(&b, "GLOBAL OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		line(".SH EXAMPLES\n.nf\n%s\n.fi", roff(strings.TrimRight(cmd.Example, "\n")))
	}
	var related []string
	if cmd.HasParent() {
		related = append(related, pageName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			related = append(related, pageName(sub))
		}
	}
	if len(related) > 0 {
		line(".SH SEE ALSO")
		for i, other := range related {
			end := ","
			if i == len(related)-1 {
				end = ""
			}
			line(`.BR %s (1)%s`, roff(other), end)
		}
	}
	return b.Bytes()
}

// options writes a section about flags.
func options(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			name = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + name
		}
		if value != "" {
			name += ` \fI` + roff(value) + `\fR`
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", name, roff(usage))
	})
}

// roff escapes a text for a man page. A line must not begin with a control character.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
