package skill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/listing"
)

// Options are the settings of an [Extension]. A nil *Options is valid.
type Options struct {
	// Budget limits the list of skills in a tool's description, in tokens of four
	// characters. Defaults to [ListingBudget] for the model's context window.
	Budget int
	// ActiveBudget limits the text of the skills that a task makes active, in tokens of
	// four characters. The first skill that exceeds the budget is cut, and later skills
	// are left out. Defaults to DefaultBudget, which is half of the default limit of all
	// prompt sections.
	ActiveBudget int
	// ToolName is the name of the tool that reads skills. Defaults to ReadTool.
	ToolName string
	// Suffix is a text after the list of skills in a tool's description. Defaults to
	// empty.
	Suffix string
	// NoNames turns /name off: the user's text stays unchanged. By default, the skill's
	// text is added before the user's message.
	NoNames bool
	// Project is the directory that the template variables describe. By default the
	// variables about the project are empty.
	Project string
	// Mode is the value of the variable {{mode}}. Defaults to empty.
	Mode string
	// Refresh is how long a list of skills is used before a turn reads the sources again.
	// A negative value means that turns never read them again. Slow sources are read less
	// often. Defaults to 1 second.
	Refresh time.Duration
	// EnforceAllowedTools denies calls that the AllowedTools of an active skill do not
	// cover. If several skills are active, all of them must cover a call. A skill never
	// adds tools to an agent. Defaults to false.
	EnforceAllowedTools bool
	// Patterns checks the entries of AllowedTools that have parentheses. Without
	// Patterns, such an entry covers no call.
	Patterns belay.PatternAuthorizer
	// Fill fills in the text of a skill that a user typed as /name. It returns false for a
	// skill whose text it does not fill in. By default, and then, only $ARGUMENTS is
	// replaced.
	Fill func(ctx context.Context, typed *Typed) (text string, ok bool, err error)
}

// Typed is a skill that a user typed as /name.
type Typed struct {
	Skill *Skill
	// Text is the text of the skill. Arguments is the text that the user typed after the
	// name.
	Text, Arguments string
	// Session is the session of the user.
	Session string
	// Controls can run tools. They are valid until Fill returns.
	Controls *belay.Controls
}

// Extension gives an agent the skills of a catalog. Make one with [New], and put it
// into the agent's Options.Extensions.
type Extension struct {
	catalog *Catalog
	opts    Options

	mu    sync.Mutex
	tools map[belay.Reach]madeTools
}

var (
	_ belay.HookExtension     = (*Extension)(nil)
	_ belay.NameExtension     = (*Extension)(nil)
	_ belay.StepToolExtension = (*Extension)(nil)
	_ belay.ResourceExtension = (*Extension)(nil)
)

// New makes an extension. Several agents may share it.
func New(catalog *Catalog, opts *Options) (*Extension, error) {
	e := &Extension{catalog: catalog, tools: make(map[belay.Reach]madeTools)}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.ActiveBudget == 0 {
		e.opts.ActiveBudget = DefaultBudget
	}
	if e.opts.ToolName == "" {
		e.opts.ToolName = ReadTool
	}
	if e.opts.Refresh == 0 {
		e.opts.Refresh = time.Second
	}
	switch {
	case catalog == nil:
		return nil, errors.New("skills: there is no catalog: make one with NewCatalog")
	case e.opts.Budget < 0:
		return nil, errors.New("skills: budget must not be negative")
	case e.opts.ActiveBudget < 0:
		return nil, errors.New("skills: active budget must not be negative")
	case e.opts.ToolName == InvokeTool:
		return nil, fmt.Errorf("skills: tool name: %s is the tool that calls computed skills: use another name", InvokeTool)
	}
	return e, nil
}

// Name returns "skills". Errors use it.
func (e *Extension) Name() string { return "skills" }

// Hooks returns the hook that adds the text of active skills to the prompt. With
// EnforceAllowedTools, it also returns the hooks that enforce the limits.
func (e *Extension) Hooks() []hook.Subscription {
	last := &hook.Options{ // run last: sections of other hooks get their space first
		Priority: math.MaxInt, NoInherit: true, Visibility: hook.VisibleInDebug, // a subagent has its own skills, or none
	}
	hooks := []hook.Subscription{
		belay.TurnPrePromptCompile.On("skill.activate", e.activate, last),
	}
	if e.opts.EnforceAllowedTools {
		hooks = append(hooks,
			belay.TurnPrePolicy.On("skill.limit", e.limit, &hook.Options{NoInherit: true, Failure: hook.Closed}),
			belay.ToolPre.On("skill.allowed-tools", e.allow, &hook.Options{NoInherit: true}))
	}
	return hooks
}

// compute calls the skill's handler and recovers a panic. All calls of handlers, by users
// and by models, use compute.
func (o *owned) compute(ctx context.Context, use *Use) (parts []belay.Part, err error) {
	defer func() {
		if p := recover(); p != nil {
			parts, err = nil, fmt.Errorf("skill %q: its handler panicked: %v", o.skill.Name, p)
		}
	}()
	parts, err = o.skill.Handler(ctx, use)
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w", o.skill.Name, err)
	}
	for _, p := range parts {
		if p.Type != belay.PartText && p.Type != belay.PartMedia {
			return nil, fmt.Errorf("skill %q: its handler returned a part of type %q: return only text, images or files", o.skill.Name, p.Type)
		}
	}
	return parts, nil
}

// mostActive is how many skills a task can make active. It is half of the default maximum
// number of prompt sections.
const mostActive = 8

// activate returns prompt sections with the text of the active skills. It leaves out skills
// that the message names, because the message has their text, and skills that do not fit
// into the budget.
func (e *Extension) activate(ctx context.Context, in belay.TurnSoFar) (belay.PromptSections, error) {
	var out belay.PromptSections
	room := e.opts.ActiveBudget * listing.CharactersPerToken
	now := e.catalog.now.Load()
	named := make(map[*Skill]bool)
	for _, s := range now.named(in.Text()) {
		named[s] = true
	}
	for _, m := range e.in(ctx, in.Agent()).active(now, in.Text()) {
		if named[m.Skill] {
			continue // the message already contains the skill's text
		}
		title := "Skill: " + m.Skill.Name
		if m.Skill.Hidden {
			title = "Skill"
		}
		if room -= utf8.RuneCountInString(title); room <= 0 || len(out.Sections) == mostActive {
			room = 0
			out.Audit = append(out.Audit, hook.Audit{Code: "skill.left_out", Message: "skill " + m.Skill.ID + " is active but does not fit into the prompt"})
			continue
		}
		r, err := now.byName[m.Skill.Name].read(ctx, "")
		if err != nil {
			out.Audit = append(out.Audit, hook.Audit{Code: "skill.unreadable", Message: "skill " + m.Skill.ID + " is active but cannot be read"})
			continue
		}
		if strings.TrimSpace(r.Text) == "" {
			continue
		}
		body := r.Text
		if m.Skill.template() {
			body = e.variables(body, in.Agent(), taskOf(in.Text())).Expand(body)
		}
		out.Sections = append(out.Sections, belay.PromptSection{ID: idPrefix + m.Skill.ID, Title: title, Body: body, Budget: room})
		room -= utf8.RuneCountInString(body)
	}
	return out, nil
}

// variables returns the values of the variables. It detects the language only if the
// template uses the language, because detecting takes time.
func (e *Extension) variables(template, agent, task string) Variables {
	v := Variables{AgentID: agent, Mode: e.opts.Mode, Task: task}
	if e.opts.Project == "" {
		return v
	}
	v.ProjectPath = e.opts.Project
	if whole, err := filepath.Abs(e.opts.Project); err == nil {
		v.ProjectPath = whole
	}
	v.ProjectName = filepath.Base(v.ProjectPath)
	for name := range variablesOf(template) {
		if name == "language" || name == "framework" {
			if root, err := os.OpenRoot(e.opts.Project); err == nil {
				v.Language, v.Framework = Detect(root.FS())
				_ = root.Close() // only read, so an error does not matter
			}
			break
		}
	}
	return v
}

func notFound(err error) belay.Result { return belay.Failed(belay.ClassNotFound, err.Error()) }

// invoke runs a computed skill for the model.
func (o *owned) invoke(ctx context.Context, use *Use) (belay.Result, error) {
	parts, err := o.compute(ctx, use)
	if err != nil {
		return belay.Result{}, err
	}
	var texts []string
	var media []belay.Media
	for _, p := range parts {
		if p.Type == belay.PartMedia && p.Media != nil {
			media = append(media, *p.Media)
		} else {
			texts = append(texts, p.Text)
		}
	}
	text, err := json.Marshal(struct {
		Skill   string `json:"skill"`
		Content string `json:"content"`
	}{use.Name, strings.Join(texts, "\n")})
	if err != nil {
		return belay.Result{}, fmt.Errorf("skill %q: %w", use.Name, err)
	}
	render, err := json.Marshal(parts)
	if err != nil {
		return belay.Result{}, fmt.Errorf("skill %q: %w", use.Name, err)
	}
	return belay.Result{Text: string(text), Media: media, Render: render}, nil
}
