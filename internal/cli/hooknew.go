package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
)

var hookID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (a *app) newHookCommand() *cobra.Command {
	var phase, tools string
	var user bool
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Write a hook to begin with: a file and a script",
		Long: `Writes a file that declares a hook, and the script that it runs, into .belay/hooks of the project, or with --user into the
user's settings. The script says what to do next. A hook of a project runs once it is trusted.`,
		Example: `  belay hooks new no-prod --tools write,edit
  belay hooks new greet --phase user.prompt.submit --user`,
		Args: arguments(1, 1, "give the hook an ID, such as no-prod"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			if !hookID.MatchString(args[0]) {
				return usage("id %q: a hook's id is made of letters, digits, dots, hyphens and underscores", args[0])
			}
			if !slices.Contains(phaseNames(), phase) {
				return usage("there is no phase %q%s: `belay hooks phases` lists them", phase, near.Hint(phase, phaseNames()))
			}
			dir := filepath.Join(projectPlace(settings), "hooks")
			if user {
				if settings.UserDir == "" {
					return usage("--user: there is no directory for the user's settings: set HOME")
				}
				dir = filepath.Join(settings.UserDir, "hooks")
			}
			return a.newHook(settings, dir, args[0], phase, tools, user)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&phase, "phase", belay.ToolPre.Name(), "when it runs: `belay hooks phases` lists the phases")
	flags.StringVar(&tools, "tools", "", "only for these tools, between commas")
	flags.BoolVar(&user, "user", false, "for all projects of this user")
	complete(cmd, "phase", phaseNames())
	return cmd
}

func (a *app) newHook(s *config.Loaded, dir, id, phase, tools string, user bool) error {
	file, script := filepath.Join(dir, id+".yaml"), filepath.Join(dir, id+".sh")
	for _, path := range []string{file, script} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already: choose another id, or change it", shownPath(s, path))
		}
	}
	match := ""
	if tools != "" {
		match = "    match: { tools: [" + strings.Join(strings.FieldsFunc(tools, func(r rune) bool { return r == ',' || r == ' ' }), ", ") + "] }\n"
	}
	text := fmt.Sprintf("hooks:\n  - id: %s\n    phase: %s\n%s    run: ./%s.sh\n    timeout: 5s\n    shadow: true   # runs and is recorded, and changes nothing: take this line out when it does what it should\n", id, phase, match, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(fmt.Sprintf(newScript, phase, phase)), 0o700); err != nil {
		return err
	}
	id, next := "project/"+id, "trust it:      belay trust\n"
	if user {
		id, next = strings.TrimPrefix(id, "project/"), ""
	}
	fmt.Fprintf(a.out, "%s\n%s\n\n%stry it:        belay hooks try %s --input call.json\nsee its place: belay hooks plan %s\n", shownPath(s, file), shownPath(s, script), next, id, phase)
	return nil
}

const newScript = `#!/bin/sh
# Standard input is one JSON object: {"phase": %q, "session": …, "input": …}. What is in "input":
#   belay hooks schema %s
# Exit 0 and print nothing: no opinion. Exit 2: deny, for the reason on standard error. Or print one JSON object:
#   {"decision": "deny", "reason": "…"}
call=$(cat)
case $call in
*/srv/prod/*)
  echo "production is off limits" >&2
  exit 2
  ;;
esac
`
