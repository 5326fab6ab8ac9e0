package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/permit"
)

// settingsFile is a settings file of Claude Code.
type settingsFile struct {
	path string
	own  bool // the file belongs to the user, not to the project
	*claude.Settings
	err error // why the file cannot be read
}

// settingsFiles reads the settings files of Claude Code that exist: those of the user, then
// those of the project.
func settingsFiles(ctx context.Context, s *config.Loaded) []settingsFile {
	where := claudeFiles(ctx, s, nil)
	var files []settingsFile
	if own := where.Own(); own != "" {
		files = append(files, settingsFile{path: filepath.Join(own, "settings.json"), own: true})
	}
	for _, file := range claudeSettings(s) {
		if !slices.ContainsFunc(files, func(f settingsFile) bool { return sameFile(f.path, file) }) {
			files = append(files, settingsFile{path: file})
		}
	}
	for i := range files {
		files[i].Settings, files[i].err = claude.ReadSettings(files[i].path)
	}
	return slices.DeleteFunc(files, func(f settingsFile) bool { return errors.Is(f.err, fs.ErrNotExist) })
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// OtherPermissions returns the permissions in settings files of Claude Code as rules and
// guards of the floor. It leaves out rules that the floor cannot have. Instead of a deny rule
// that the floor cannot have, it denies all calls of the tool.
func OtherPermissions(ctx context.Context, s *config.Loaded) *claude.Permissions {
	all := new(claude.Permissions)
	if !s.OtherAgents.Uses("permissions") {
		return all
	}
	for _, f := range settingsFiles(ctx, s) {
		if f.err == nil {
			p := permissionsOf(s, &f)
			all.Rules, all.Guards = append(all.Rules, p.Rules...), append(all.Guards, p.Guards...)
		}
	}
	return all
}

func permissionsOf(s *config.Loaded, f *settingsFile) *claude.Permissions {
	where := claudeFiles(context.Background(), s, nil)
	p := f.Permissions(&claude.PermissionOptions{Project: where.Project, Home: where.Home, Own: f.own, Shown: ShownPath(s, f.path)})
	fits := func(rule permit.Rule) error {
		_, err := permit.New(s.Project, &permit.Options{Rules: []permit.Rule{rule}, Tools: withProfiles(s.Permit.Tools), Aliases: toolAliases})
		return err
	}
	rules := p.Rules
	p.Rules = nil
	for _, rule := range rules {
		err := fits(rule)
		if err != nil && rule.Decision == permit.RuleDeny {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: Belay cannot translate it, so it denies all calls of %s", rule.String(), rule.Tool))
			rule.Pattern = ""
			err = fits(rule)
		}
		if err != nil && rule.Decision != permit.RuleAllow && OfServer(rule.Tool) && !strings.HasPrefix(rule.Tool, "mcp__") {
			continue // the same rule with mcp__ applies
		}
		if err != nil {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: no effect: %s", rule.String(), strings.TrimPrefix(err.Error(), "permit: ")))
			continue
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// settingsUses reports the settings files of Claude Code. Hooks are not included.
func settingsUses(ctx context.Context, s *config.Loaded) []OtherFile {
	var uses []OtherFile
	for _, f := range settingsFiles(ctx, s) {
		one := OtherFile{Path: ShownPath(s, f.path)}
		if f.err != nil {
			one.Use, one.Partly = fmt.Sprintf("not used: %v: its permissions have no effect", f.err), true
			uses = append(uses, one)
			continue
		}
		var parts []string
		if len(f.Allow)+len(f.Ask)+len(f.Deny) > 0 && !s.OtherAgents.Uses("permissions") {
			parts = append(parts, "permissions: "+switchedOff(s, "permissions"))
		} else {
			p := permissionsOf(s, &f)
			if n := len(f.Deny) + len(f.Ask); n > 0 || len(p.Rules) > 0 {
				parts = append(parts, fmt.Sprintf("permissions: %s of the floor (`belay permit rules` lists them)", visible.Counted(len(p.Rules)+len(p.Guards), "rule")))
			}
			parts = append(parts, p.Notes...)
			one.Partly = len(p.Notes) > 0
		}
		if len(f.Others) > 0 {
			parts = append(parts, "Belay ignores "+strings.Join(f.Others, ", "))
		}
		parts = append(parts, f.Notes...)
		one.Partly = one.Partly || len(f.Notes) > 0
		if one.Use = strings.Join(parts, "; "); one.Use == "" {
			one.Use = "nothing in it, besides hooks and plugins"
		}
		uses = append(uses, one)
	}
	return uses
}
