package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/belay-run/belay/serve/api"
)

// These are the states of a provider.
const (
	Found   = "ok"
	Missing = "missing"
	Broken  = "broken"
	Noted   = "note"
)

// Models are the providers and their models.
type Models struct {
	// Model is the model that tasks use by default, or "".
	Model string `json:"model"`
	// Problem says why a task cannot run.
	Problem   string     `json:"problem,omitempty"`
	Providers []Provider `json:"providers"`
}

// Provider is a provider with its models.
type Provider struct {
	api.Provider

	// Set says that the provider is in the settings, has a key, or was named.
	Set bool `json:"-"`

	provider *config.Provider
}

// ListModels returns the providers with these names, or all of them.
func ListModels(settings *config.Loaded, names []string) (*Models, error) {
	o := &Models{}
	if name, err := assembly.ChooseModel(settings); err == nil {
		o.Model = name
	}
	if _, err := assembly.OpenModel(settings); err != nil {
		o.Problem = err.Error()
	}
	named := len(names) > 0
	if !named {
		names = settings.ProviderNames()
	}
	for _, name := range names {
		p, err := settings.Provider(name)
		if err != nil {
			return nil, fmt.Errorf("there is no provider %q%s: there are %s", name, near.Hint(name, settings.ProviderNames()), strings.Join(settings.ProviderNames(), ", "))
		}
		offer := offerOf(settings, p)
		offer.Set = offer.Set || named
		o.Providers = append(o.Providers, offer)
	}
	return o, nil
}

// offerOf describes a provider, and whether it can be used. It sends no request.
func offerOf(settings *config.Loaded, p *config.Provider) Provider {
	o := Provider{Provider: api.Provider{Name: p.Name, Kind: p.Kind, URL: p.URL, NeedsKey: p.NeedsKey(), Status: Found}, Set: p.Said, provider: p}
	key, where, err := assembly.KeyOf(settings, p)
	switch {
	case err != nil:
		o.Status, o.Detail = Broken, err.Error()
		return o
	case key != "":
		o.Key, o.KeyFrom, o.Set = assembly.MaskKey(key), where, true
		o.Detail = fmt.Sprintf("key %s from %s", o.Key, where)
		o.Remedy = openKeyFile(p, where)
	case p.NeedsKey():
		o.Status, o.Detail = Missing, "no key"
		o.Remedy = "set " + strings.Join(p.KeyEnv, " or ")
		return o
	case p.Said:
		o.Detail = "no key is sent"
	default:
		o.Status, o.Detail = Noted, "no key is sent"
	}
	if p.Default == "" || p.Said {
		o.Detail += ", at " + p.URL
	}
	return o
}

// Check asks all providers for their models at the same time.
func (o *Models) Check(ctx context.Context, settings *config.Loaded, timeout time.Duration) {
	var done sync.WaitGroup
	for i := range o.Providers {
		if p := &o.Providers[i]; p.Status == Found || p.Status == Noted {
			done.Go(func() { p.ask(ctx, settings, timeout) }) // ends when the provider answers or the timeout passes
		}
	}
	done.Wait()
}

// ask asks one provider for its models.
func (o *Provider) ask(ctx context.Context, settings *config.Loaded, timeout time.Duration) {
	key, _, err := assembly.KeyOf(settings, o.provider)
	if err != nil {
		o.Status, o.Detail = Broken, err.Error()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	names, err := assembly.MakeModel(o.provider, "", key).Models(ctx)
	failure, said := errors.AsType[*belay.ModelError](err)
	there := err == nil || said && assembly.Answered(failure)
	o.Reachable = &there
	failed := Broken
	if !o.Set {
		failed = Noted // a server that nobody configured does not have to run
	}
	switch {
	case err == nil:
		o.Status = Found
		o.Detail += fmt.Sprintf(", answered in %s with %s", visible.Took(time.Since(began)), visible.Counted(len(names), "model"))
		o.Models = infos(o.provider, sorted(o.provider, names))
	case !said:
		o.Status = failed
		o.Detail += fmt.Sprintf(", no answer within %s", timeout)
	case !there:
		o.Status = failed
		o.Detail += ", no answer: " + assembly.FailureReason(failure)
	case failure.Kind == belay.ModelAuth && key == "":
		o.Status, o.Detail = failed, o.Detail+", and the provider needs a key: "+assembly.FailureReason(failure)
		o.Remedy = fmt.Sprintf("set key_env or key_file under providers.%s in the user's %s; a vendor's own variable is used only for the vendor's own address", o.Name, config.Name)
	case failure.Kind == belay.ModelAuth:
		o.Status, o.Detail = failed, o.Detail+", and the provider refuses the key: "+assembly.FailureReason(failure)
	default:
		o.Status, o.Detail = failed, o.Detail+", answers, but not with a list of models: "+assembly.FailureReason(failure)
	}
}

// List adds the models that are known without a request. It does this for providers that
// can be used or were named.
func (o *Models) List(settings *config.Loaded) {
	for i := range o.Providers {
		p := &o.Providers[i]
		if p.Set && p.Models == nil {
			p.Models = infos(p.provider, KnownModels(settings, p.provider))
		}
	}
}

// KnownModels returns the names of models in the built-in table or the settings.
func KnownModels(settings *config.Loaded, p *config.Provider) []string {
	var names []string
	if !p.Moved {
		names = assembly.TableOf(p)
	}
	further := slices.Sorted(maps.Keys(p.Models))
	if name, err := assembly.ChooseModel(settings); err == nil {
		if of, model, err := settings.ModelOf(name); err == nil && of.Name == p.Name && p.Default != model {
			further = append(further, model)
		}
	}
	for _, name := range further {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sorted puts models in the built-in table or the settings first. A service may list many
// models that are not for chats.
func sorted(p *config.Provider, names []string) []string {
	place := make(map[string]int)
	for i, name := range append(slices.Sorted(maps.Keys(p.Models)), assembly.TableOf(p)...) {
		place[name] = i - 1<<20
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	return names
}

// infos returns the context window and the price of models.
func infos(p *config.Provider, names []string) []belay.ModelInfo {
	var all []belay.ModelInfo
	for _, name := range names {
		info := assembly.MakeModel(p, name, assembly.NoKey).Info()
		info.Name = p.Name + "/" + name
		all = append(all, info)
	}
	return all
}

// openKeyFile returns a warning if other users of this machine can read or change the key
// file.
func openKeyFile(p *config.Provider, where string) string {
	if where == "" || where != p.KeyFile || runtime.GOOS == "windows" { // Windows has no such file modes
		return ""
	}
	info, err := os.Stat(p.KeyFile)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	return fmt.Sprintf("other users of this machine can read or change %s (mode %04o): run chmod 600 %s", p.KeyFile, info.Mode().Perm(), p.KeyFile)
}
