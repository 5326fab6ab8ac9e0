package acp

import (
	"context"
	"slices"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/acp/internal/jsonrpc"
)

// The ids of the options of a session.
const (
	modeOption  = "mode"
	modelOption = "model"
)

// choices returns what the user can choose: the mode, for older editors in its own field, and
// the model.
func (s *session) choices(ctx context.Context) (*sdk.SessionModeState, []sdk.SessionConfigOption) {
	var modes *sdk.SessionModeState
	if mode, ok := s.modeNow(); ok {
		modes = &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(mode)}
		for _, m := range s.space.Modes {
			modes.AvailableModes = append(modes.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m.ID), Name: m.Name, Description: &m.About})
		}
		s.mu.Lock()
		s.mode = mode
		s.mu.Unlock()
	}
	return modes, s.options(ctx)
}

// modeNow returns the mode of the session. It reports false if the session has no modes.
func (s *session) modeNow() (string, bool) {
	if len(s.space.Modes) == 0 || s.space.Mode == nil || s.space.SetMode == nil {
		return "", false
	}
	return s.space.Mode(), true
}

// options returns the options of the session with their values.
func (s *session) options(ctx context.Context) []sdk.SessionConfigOption {
	options := []sdk.SessionConfigOption{}
	if mode, ok := s.modeNow(); ok {
		options = append(options, option(modeOption, "Mode", "Which calls run without approval", sdk.SessionConfigOptionCategoryMode, mode, s.space.Modes))
	}
	if s.space.Models == nil || s.space.SetModel == nil {
		return options
	}
	models, current, err := s.space.Models(ctx)
	if err != nil {
		s.e.server.opts.Logger.WarnContext(ctx, "the models cannot be listed", "session", s.id, "error", err)
	}
	if err != nil || len(models) == 0 {
		return options
	}
	return append(options, option(modelOption, "Model", "Which model answers, from the next message on", sdk.SessionConfigOptionCategoryModel, current, models))
}

func option(id, name, about string, category sdk.SessionConfigOptionCategory, current string, choices []Choice) sdk.SessionConfigOption {
	if !slices.ContainsFunc(choices, func(c Choice) bool { return c.ID == current }) {
		choices = append([]Choice{{ID: current, Name: current}}, choices...)
	}
	var all sdk.SessionConfigSelectOptionsUngrouped
	for _, c := range choices {
		line := sdk.SessionConfigSelectOption{Name: c.Name, Value: sdk.SessionConfigValueId(c.ID)}
		if c.About != "" {
			line.Description = &c.About
		}
		all = append(all, line)
	}
	o := sdk.NewSessionConfigOptionSelect(sdk.SessionConfigValueId(current), sdk.SessionConfigSelectOptions{Ungrouped: &all})
	o.Select.Id, o.Select.Name, o.Select.Description, o.Select.Category = sdk.SessionConfigId(id), name, &about, &category
	return o
}

// setMode switches the mode before the next message is read, so that a prompt after it runs
// in the new mode.
func (e *editor) setMode(p *sdk.SetSessionModeRequest) work {
	s, err := e.session(p.SessionId)
	if err == nil {
		err = s.switchMode(string(p.ModeId))
	}
	return func(context.Context) (any, error) {
		if err != nil {
			return nil, err
		}
		return jsonrpc.Reply{Result: &sdk.SetSessionModeResponse{}, After: s.tellMode}, nil
	}
}

func (s *session) switchMode(mode string) error {
	if _, ok := s.modeNow(); !ok || !slices.ContainsFunc(s.space.Modes, func(c Choice) bool { return c.ID == mode }) {
		return invalid("there is no mode %q in this session", mode)
	}
	return s.space.SetMode(mode)
}

// tellMode tells the editor the mode, if it has changed. A tool may change it too.
func (s *session) tellMode() {
	mode, ok := s.modeNow()
	if !ok {
		return
	}
	s.mu.Lock()
	changed := mode != s.mode
	s.mode = mode
	s.mu.Unlock()
	if !changed {
		return
	}
	s.update(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(mode)}})
	s.update(sdk.SessionUpdate{ConfigOptionUpdate: &sdk.SessionConfigOptionUpdate{ConfigOptions: s.options(context.Background())}})
}

func (e *editor) setOption(p *sdk.SetSessionConfigOptionRequest) work {
	if p.ValueId == nil {
		return fails(invalid("the option has the wrong type: all options of a session are selections"))
	}
	s, err := e.session(p.ValueId.SessionId)
	if err != nil {
		return fails(err)
	}
	value := string(p.ValueId.Value)
	switch p.ValueId.ConfigId {
	case modeOption:
		err = s.switchMode(value)
	case modelOption:
		return func(ctx context.Context) (any, error) {
			if s.space.SetModel == nil {
				return nil, invalid("the model of this session cannot be changed")
			}
			if err := s.space.SetModel(ctx, s.belay, value); err != nil {
				return nil, told(err)
			}
			return &sdk.SetSessionConfigOptionResponse{ConfigOptions: s.options(ctx)}, nil
		}
	default:
		err = invalid("there is no option %q: there are %q and %q", p.ValueId.ConfigId, modeOption, modelOption)
	}
	return func(ctx context.Context) (any, error) {
		if err != nil {
			return nil, err
		}
		return jsonrpc.Reply{Result: &sdk.SetSessionConfigOptionResponse{ConfigOptions: s.options(ctx)}, After: s.tellMode}, nil
	}
}

// advertise tells the editor which slash commands the user can type.
func (s *session) advertise() {
	commands := []sdk.AvailableCommand{}
	for _, n := range s.space.Agent.TypedNames() {
		c := sdk.AvailableCommand{Name: n.Name, Description: n.Description}
		if c.Description == "" {
			c.Description = n.Name
		}
		if !slices.Contains(withoutText, n.Name) {
			c.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: "text for the command"}}
		}
		commands = append(commands, c)
	}
	s.update(sdk.SessionUpdate{AvailableCommandsUpdate: &sdk.SessionAvailableCommandsUpdate{AvailableCommands: commands}})
}

// withoutText are the commands that take no text.
var withoutText = []string{"help", "compact", "stop"}
