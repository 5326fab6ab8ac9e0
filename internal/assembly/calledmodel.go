package assembly

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/gemini"
	"github.com/belay-run/belay/provider/openai"
)

// calledModel is a model with the name that the settings give it. A session stores this
// name to find the model again. Two accounts of one vendor have different names.
type calledModel struct {
	belay.Model

	name string
	// at is the provider, and model is the name that the provider uses. at is nil for a
	// script.
	at    *config.Provider
	model string
	// key is the masked key, or "" if no key is sent. keyFrom is the variable or file that
	// the key comes from.
	key, keyFrom string
}

var (
	_ belay.InfoModel      = (*calledModel)(nil)
	_ belay.ToolCheckModel = (*calledModel)(nil)
	_ belay.ReachModel     = (*calledModel)(nil)
)

// Info returns the information of the model, with the name from the settings.
func (m *calledModel) Info() belay.ModelInfo {
	var info belay.ModelInfo
	if own, ok := m.Model.(belay.InfoModel); ok {
		info = own.Info()
	}
	info.Name = m.name
	return info
}

// CheckTools checks the tools, if the model supports that.
func (m *calledModel) CheckTools(tools []belay.ToolDeclaration) error {
	if own, ok := m.Model.(belay.ToolCheckModel); ok {
		return own.CheckTools(tools)
	}
	return nil
}

// Stream streams the response of the model. It adds advice to an error that a wrong name,
// key or address causes.
func (m *calledModel) Stream(ctx context.Context, req *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		m.Model.Stream(ctx, req)(func(chunk belay.Chunk, err error) bool {
			if err != nil {
				err = m.advised(err)
			}
			return yield(chunk, err)
		})
	}
}

// advised adds advice to an error of the model.
func (m *calledModel) advised(err error) error {
	failure, ok := errors.AsType[*belay.ModelError](err)
	if !ok || m.at == nil || failure.Err == nil {
		return err
	}
	if failure.Kind == belay.ModelAuth {
		advised := *failure
		advised.Err = fmt.Errorf("%w; %s", failure.Err, m.paidWith())
		return &advised
	}
	said := strings.ToLower(failure.Err.Error())
	if failure.Status != http.StatusNotFound && !(failure.Status == http.StatusBadRequest && strings.Contains(said, "not a valid model")) {
		return err
	}
	advised := *failure
	switch {
	case strings.Contains(said, "model"):
		advised.Err = fmt.Errorf("%w; `belay models %s --check` lists its models", failure.Err, m.at.Name)
	case m.at.Kind == config.KindOpenAI && m.at.Default == "": // a server that is not OpenAI's
		advised.Err = fmt.Errorf("%w; if the server does not have the Responses API, set kind: openai-chat under providers.%s in the user's %s", failure.Err, m.at.Name, config.Name)
	default:
		advised.Err = fmt.Errorf("%w; check that %s is the right address: `belay models %s --check`", failure.Err, m.at.URL, m.at.Name)
	}
	return &advised
}

// paidWith returns which key was sent, as text.
func (m *calledModel) paidWith() string {
	if m.key == "" {
		return fmt.Sprintf("no key was sent: set key_env or key_file under providers.%s in the user's %s", m.at.Name, config.Name)
	}
	return fmt.Sprintf("the key was %s from %s", m.key, m.keyFrom)
}

// reachTime limits how long a provider may take to list its models.
const reachTime = 5 * time.Second

// Reach asks the provider for its models. It returns an error if the provider does not
// answer, refuses the key, or does not have the model. If the provider answers without a
// list, Reach returns nil.
func (m *calledModel) Reach(ctx context.Context) error {
	lister, ok := m.Model.(modelLister)
	if m.at == nil || !ok {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	names, err := lister.Models(limited)
	failure, said := errors.AsType[*belay.ModelError](err)
	switch {
	case err == nil && !m.isAmong(names):
		return fmt.Errorf("%s, at %s, has no model %q%s: `belay models %s --check` lists its models; if it has the model and does not list it, add it under providers.%s.models in the user's %s",
			m.at.Name, m.at.URL, m.model, near.Hint(m.model, names), m.at.Name, m.at.Name, config.Name)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !said:
		return fmt.Errorf("%s does not answer at %s within %s", m.at.Name, m.at.URL, reachTime)
	case !Answered(failure):
		return fmt.Errorf("%s does not answer at %s: %s", m.at.Name, m.at.URL, FailureReason(failure))
	case failure.Kind == belay.ModelAuth && m.key == "":
		return fmt.Errorf("%s, at %s, needs a key: set key_env or key_file under providers.%s in the user's %s", m.at.Name, m.at.URL, m.at.Name, config.Name)
	case failure.Kind == belay.ModelAuth:
		return fmt.Errorf("%s refuses the key %s from %s: %s", m.at.Name, m.key, m.keyFrom, FailureReason(failure))
	default:
		return nil // the provider answers, but not with a list
	}
}

// isAmong reports whether the provider lists the model, or whether the settings or the
// built-in table have it. The name may be a short form of a listed name: qwen3 for
// qwen3:latest, or claude-sonnet-4-5 for a dated version. At openrouter it may have a
// suffix, such as :free. If names is empty, isAmong reports true.
func (m *calledModel) isAmong(names []string) bool {
	if _, said := m.at.Models[m.model]; said || len(names) == 0 {
		return true
	}
	if !m.at.Moved && slices.Contains(TableOf(m.at), m.model) {
		return true
	}
	plain, _, _ := strings.Cut(m.model, ":")
	return slices.ContainsFunc(names, func(name string) bool {
		switch dated, isLonger := strings.CutPrefix(name, m.model+"-"); {
		case name == m.model, name == m.model+":latest":
			return true
		case m.at.Table == "openrouter" && name == plain:
			return true
		default:
			return isLonger && len(dated) == len("20060102") && strings.Trim(dated, "0123456789") == ""
		}
	})
}

// IsHere reports whether an address is on this machine.
func IsHere(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.Unmap().IsLoopback() || net.IP(ip.AsSlice()).IsUnspecified())
}

// modelLister can list the models of a provider.
type modelLister interface {
	Models(ctx context.Context) ([]string, error)
}

// Answered reports whether the server answered, even with an error.
func Answered(failure *belay.ModelError) bool {
	_, lost := errors.AsType[*os.SyscallError](failure.Err) // for example, nothing listens at the address
	return failure.Kind != belay.ModelNetwork && !lost
}

// FailureReason returns the cause of a failure as one short line, without the address.
func FailureReason(failure *belay.ModelError) string {
	err := failure.Err
	if lost, ok := errors.AsType[*url.Error](err); ok {
		err = lost.Err
	}
	const most = 300
	line := []rune(visible.OneLine(err.Error()))
	if len(line) > most {
		line = append(line[:most-1], '…')
	}
	return string(line)
}

// TableOf returns the models of a provider in the built-in table.
func TableOf(p *config.Provider) []string {
	switch p.Kind {
	case config.KindAnthropic:
		return anthropic.Known()
	case config.KindGemini:
		return gemini.Known()
	default:
		return openai.Known(p.Table)
	}
}
