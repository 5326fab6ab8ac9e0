package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/permit"
	"github.com/spf13/cobra"
)

func (a *app) permitRules() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules, guards, protections, zones and modes that apply here",
		Long: `Lists the rules and guards of the user and of the project, the built-in protections and which of them are relaxed, the zones,
and the modes. Shows where each comes from. The floor checks guards and protections first, then rules (deny before ask before
allow), then the mode.`,
		Example: `  belay permit rules
  belay permit rules --json | jq '.protections[] | select(.relaxed)'`,
		Args: arguments(0, 0, "rules takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			r, err := a.inForce(cmd.Context(), settings)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(r)
			}
			return a.showInForce(r)
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	return cmd
}

// inForce holds the rules that apply in a project. --json prints it.
type inForce struct {
	Project     string            `json:"project"`
	Mode        permit.Mode       `json:"mode"`
	ModeFrom    string            `json:"mode_from"`
	Sandbox     string            `json:"sandbox"`
	Rules       []ruleInForce     `json:"rules"`
	Guards      []guardInForce    `json:"guards"`
	Tools       []toolInForce     `json:"tools"`
	Roots       []string          `json:"roots"`
	Protections []protectionHolds `json:"protections"`
	Zones       []zoneInForce     `json:"zones"`
	Modes       []permit.Mode     `json:"modes"`
}

type ruleInForce struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason,omitempty"`
	From   string `json:"from"`
}

type guardInForce struct {
	ID       string   `json:"id"`
	Tools    []string `json:"tools,omitempty"`
	Deny     string   `json:"deny,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Paths    []string `json:"paths,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	From     string   `json:"from"`
}

type toolInForce struct {
	Name    string      `json:"name"`
	Zone    permit.Zone `json:"zone"`
	Reads   []string    `json:"reads,omitempty"`
	Writes  []string    `json:"writes,omitempty"`
	URLs    []string    `json:"urls,omitempty"`
	Command string      `json:"command,omitempty"`
	From    string      `json:"from"`
}

type protectionHolds struct {
	permit.Protection

	// Relaxed is the place in the settings that relaxes the protection, or "" if the
	// protection applies.
	Relaxed string `json:"relaxed,omitempty"`
}

type zoneInForce struct {
	Zone  permit.Zone `json:"zone"`
	Name  string      `json:"name"`
	Means string      `json:"means"`
}

func (a *app) inForce(ctx context.Context, s *config.Loaded) (*inForce, error) {
	f, err := a.assembler().NewFloor(ctx, s, assembly.SpillDir(s))
	if err != nil {
		return nil, err
	}
	r := &inForce{
		Project: s.Project, Mode: a.assembler().ModeOfTurn(ctx, s, nil), ModeFrom: s.From("mode").String(), Sandbox: f.Sandboxed(),
		Rules: []ruleInForce{}, Guards: []guardInForce{}, Tools: []toolInForce{}, Roots: append([]string{}, assembly.Existing(s.Permit.Roots)...), Modes: permit.Modes(),
	}
	others := assembly.OtherPermissions(ctx, s)
	rules := slices.Concat(s.Permit.Rules, others.Rules)
	for _, decision := range []permit.RuleDecision{permit.RuleDeny, permit.RuleAsk, permit.RuleAllow} {
		for i := range rules {
			if rule := &rules[i]; rule.Decision == decision {
				r.Rules = append(r.Rules, ruleInForce{rule.String(), rule.Reason, rule.Where})
			}
		}
	}
	for i := range s.Permit.Guards {
		g := &s.Permit.Guards[i]
		r.Guards = append(r.Guards, guardInForce{g.ID, g.Tools, g.Deny, g.Commands, g.Paths, g.Reason, g.Where})
	}
	for i := range others.Guards {
		g := &others.Guards[i]
		from, _, _ := strings.Cut(g.ID, ": ")
		r.Guards = append(r.Guards, guardInForce{g.ID, g.Tools, g.Deny, g.Commands, g.Paths, g.Reason, from})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Permit.Tools)) {
		p := s.Permit.Tools[name]
		r.Tools = append(r.Tools, toolInForce{name, p.Zone, p.Reads, p.Writes, p.URLs, p.Command, s.From("permit.tools").String()})
	}
	relaxed := f.Relaxed()
	for _, p := range permit.Protections() {
		held := protectionHolds{Protection: p}
		if slices.Contains(relaxed, p) {
			held.Relaxed = s.From("permit.relax").String()
		}
		r.Protections = append(r.Protections, held)
	}
	for _, z := range permit.Zones() {
		r.Zones = append(r.Zones, zoneInForce{z, z.String(), z.Means()})
	}
	return r, nil
}

// section is a titled part of the listing.
type section struct {
	title string
	rows  [][]string
}

func (a *app) showInForce(r *inForce) error {
	for i, part := range a.sections(r) {
		if i > 0 {
			a.write(a.out, "\n")
		}
		if len(part.rows) == 0 {
			part.rows = [][]string{{"none"}}
		}
		var t table
		for _, row := range part.rows {
			row[0] = "  " + row[0]
			t.add(row...)
		}
		a.write(a.out, a.onOut.dim(part.title)+"\n")
		if err := t.write(a.out, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) sections(r *inForce) []section {
	s := a.onOut
	here := section{title: "here", rows: [][]string{
		{"project", r.Project},
		{"mode", r.Mode.Name + ": " + r.Mode.Means(), s.dim(r.ModeFrom)},
		{"sandbox", r.Sandbox},
	}}
	for _, dir := range r.Roots {
		here.rows = append(here.rows, []string{"root", dir})
	}
	guards := section{title: "guards: they deny calls before Belay asks a person"}
	for i := range r.Guards {
		guards.rows = append(guards.rows, []string{r.Guards[i].ID, r.Guards[i].String(), s.dim(r.Guards[i].From)})
	}
	protections := section{title: "protections: built in"}
	for _, p := range r.Protections {
		word := string(p.Decision)
		if p.Relaxed != "" {
			word, p.Means = s.yellow("relaxed"), p.Means+s.dim("  "+p.Relaxed)
		}
		protections.rows = append(protections.rows, []string{p.ID, word, p.Means})
	}
	rules := section{title: "rules: deny before ask before allow"}
	for _, rule := range r.Rules {
		rules.rows = append(rules.rows, []string{oneLine(rule.Rule), s.dim(rule.From), oneLine(rule.Reason)})
	}
	tools := section{title: "other tools: a tool that is neither built in nor listed here is in zone 5"}
	for _, tool := range r.Tools {
		tools.rows = append(tools.rows, []string{tool.Name, fmt.Sprintf("zone %d", tool.Zone), s.dim(tool.From)})
	}
	zones := section{title: "zones"}
	for _, z := range r.Zones {
		zones.rows = append(zones.rows, []string{strconv.Itoa(int(z.Zone)), z.Name, z.Means})
	}
	modes := section{title: "modes: highest zone that runs without approval, highest zone that may ask"}
	for _, m := range r.Modes {
		modes.rows = append(modes.rows, []string{m.Name, fmt.Sprintf("%d, %d", m.Auto, m.Ask), m.Means()})
	}
	return []section{here, guards, protections, rules, tools, zones, modes}
}

// String returns what a guard denies, and why.
func (g *guardInForce) String() string {
	var parts []string
	for _, part := range []struct {
		name string
		list []string
	}{{"tools", g.Tools}, {"only commands", g.Commands}, {"only paths", g.Paths}} {
		if part.list != nil {
			parts = append(parts, part.name+" "+strings.Join(part.list, ", "))
		}
	}
	if g.Deny != "" {
		parts = append(parts, "deny "+g.Deny)
	}
	if g.Reason != "" {
		parts = append(parts, g.Reason)
	}
	return oneLine(strings.Join(parts, "; "))
}
