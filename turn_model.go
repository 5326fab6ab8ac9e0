package belay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/policy"
)

// PolicyModel is the policy setting that chooses another model for the turn by its name:
// see [Options.Models].
var PolicyModel = policy.First[string]("model")

// same reports whether two values are the same model. It reports false for models that
// cannot be compared with ==.
func same(a, b Model) bool {
	return reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// usable returns an error if the agent cannot use a model.
func (a *Agent) usable(model Model) (*namedModel, error) {
	if model == nil {
		return nil, errors.New("the model is nil: pass a model")
	}
	n := named(model)
	if err := n.check(a.tools.Load().declared); err != nil {
		return nil, err
	}
	if err := a.checkSettings(model); err != nil {
		return nil, err
	}
	return n, nil
}

// check lets the model check the declarations of tools.
func (n *namedModel) check(tools []ToolDeclaration) error {
	if c, ok := n.Model.(ToolCheckModel); ok && len(tools) > 0 {
		if err := c.CheckTools(tools); err != nil {
			return fmt.Errorf("model %s: %w", n.info.Name, err)
		}
	}
	return nil
}

// findModel finds a model by its name. An empty name means the agent's own model.
func (a *Agent) findModel(ctx context.Context, name string) (Model, error) { //nolint:ireturn // which model it is, the name says
	if name == a.model.info.Name || name == "" {
		return a.model.Model, nil
	}
	if a.opts.Models == nil {
		return nil, fmt.Errorf("model %q: the agent has only its own model: set Options.Models to find others by name", name)
	}
	model, err := a.opts.Models(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	if model == nil {
		return nil, fmt.Errorf("model %q: Options.Models found no model with this name", name)
	}
	return model, nil
}

// chosen finds a model by its name and checks that the agent can use it.
func (t *turn) chosen(name string) (*namedModel, error) {
	model, err := t.findModel(name)
	if err != nil {
		return nil, err
	}
	return t.agent.usable(model)
}

// recallModel restores the model of the session or of the resumed turn. If that model is
// unavailable, it adds a diagnostic and uses the session's or the agent's model. With
// Options.OwnModelFirst, it ignores models that were chosen in another process.
func (t *turn) recallModel() {
	s, ownFirst := t.session, t.agent.opts.OwnModelFirst
	switch name := s.state.Model; {
	case name == "":
		s.model = nil
	case s.model != nil && s.model.info.Name == name: // the model was chosen or found before
	case ownFirst:
		s.model = nil
	default:
		s.model = t.modelOr(t.agent.model, name)
	}
	if t.model = t.agent.model; s.model != nil {
		t.model = s.model
	}
	if ownFirst && !strings.Contains(t.state.ID, t.agent.serial) { // another process began the turn
		t.state.Model = ""
	}
	if name := t.state.Model; name != "" && name != t.model.info.Name {
		if n := t.modelOr(t.model, name); n != nil {
			t.model = n
		}
	}
}

// modelOr finds a model by its name. If the model is unavailable, it adds a diagnostic that
// names the model which answers instead, and returns nil.
func (t *turn) modelOr(instead *namedModel, name string) *namedModel {
	n, err := t.chosen(name)
	if err != nil {
		t.diagnostics = append(t.diagnostics, hook.Diagnostic{
			Code: codes.ModelUnavailable, Level: codes.ModelUnavailable.Level(),
			Message: fmt.Sprintf("%s answers instead: %v", cmp.Or(instead.info.Name, "the agent's own model"), err),
		})
		return nil
	}
	return n
}

// applyModelPolicy switches to the model that hooks have chosen for the turn.
func (t *turn) applyModelPolicy() error {
	name, ok := PolicyModel.Value(t.state.Policy)
	if !ok || name == t.model.info.Name {
		return nil
	}
	n, err := t.chosen(name)
	if err != nil {
		return fmt.Errorf("turn policy %q: %w", PolicyModel.Name(), err)
	}
	t.model, t.state.Model = n, name
	return nil
}
