package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/spf13/cobra"
)

// offers are the providers and their models. --json prints them.
type offers struct {
	// Model is the model that tasks use by default, or "".
	Model string `json:"model"`
	// Problem says why a task cannot run.
	Problem   string     `json:"problem,omitempty"`
	Providers []provided `json:"providers"`
}

// provided is a provider with its models.
type provided struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	URL  string `json:"url"`
	// Status is ok, missing (no key), note (unknown whether the server runs) or broken.
	Status string `json:"status"`
	// Detail is the result in words. Remedy says what to do.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
	// Key is the masked key. KeyFrom is where the key was found.
	Key      string `json:"key,omitempty"`
	KeyFrom  string `json:"key_from,omitempty"`
	NeedsKey bool   `json:"needs_key"`
	// Reachable says whether the provider answered. It is nil without --check.
	Reachable *bool             `json:"reachable,omitempty"`
	Models    []belay.ModelInfo `json:"models,omitempty"`

	set      bool // the provider is in the settings, has a key, or was named as an argument
	provider *config.Provider
}

// mostOffered is how many models of each provider are listed, unless one provider is named.
const mostOffered = 20

func (a *app) modelsCommand() *cobra.Command {
	var asJSON, check bool
	timeout := 5 * time.Second
	cmd := &cobra.Command{
		Use:   "models [PROVIDER]",
		Short: "List providers of models: key, address, models, window and price",
		Long: `Lists the built-in and the configured providers, and whether there is a key for each. For each provider that can be used, lists
its models with window and price. This sends nothing to the providers.

With --check, Belay asks each provider for its models. This shows whether the provider answers and accepts the key, and costs
nothing. The exit code is then 1 if a configured or named provider cannot be used.`,
		Example: `  belay models
  # do they answer, do they accept the key, which models do they have
  belay models --check
  belay models ollama --check
  # for programs
  belay models --json | jq -r '.providers[].models[]?.name'`,
		Args: arguments(0, 1, "name one provider, or none for all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			o, err := listOffers(settings, args)
			if err != nil {
				return err
			}
			if check {
				o.check(cmd.Context(), settings, timeout)
			}
			o.list(settings)
			show := a.showOffers
			if asJSON {
				show = func(o *offers, _, _ bool) error { return a.printJSON(o) }
			}
			if err := show(o, check, len(args) > 0); err != nil {
				return err
			}
			if check && slices.ContainsFunc(o.Providers, func(p provided) bool { return p.set && p.Status != found }) {
				return &exitError{code: exitFailed}
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			settings, err := a.settings()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return settings.ProviderNames(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object")
	cmd.Flags().BoolVar(&check, "check", false, "ask each provider for its models")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long --check waits for a provider")
	return cmd
}

// listOffers returns the providers with these names, or all of them.
func listOffers(settings *config.Loaded, names []string) (*offers, error) {
	o := &offers{}
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
			return nil, usage("there is no provider %q%s: there are %s", name, near.Hint(name, settings.ProviderNames()), strings.Join(settings.ProviderNames(), ", "))
		}
		offer := offerOf(settings, p)
		offer.set = offer.set || named
		o.Providers = append(o.Providers, offer)
	}
	return o, nil
}

// offerOf describes a provider, and whether it can be used. It sends no request.
func offerOf(settings *config.Loaded, p *config.Provider) provided {
	o := provided{Name: p.Name, Kind: p.Kind, URL: p.URL, NeedsKey: p.NeedsKey(), Status: found, set: p.Said, provider: p}
	key, where, err := assembly.KeyOf(settings, p)
	switch {
	case err != nil:
		o.Status, o.Detail = broken, err.Error()
		return o
	case key != "":
		o.Key, o.KeyFrom, o.set = assembly.MaskKey(key), where, true
		o.Detail = fmt.Sprintf("key %s from %s", o.Key, where)
		o.Remedy = openKeyFile(p, where)
	case p.NeedsKey():
		o.Status, o.Detail = missing, "no key"
		o.Remedy = "set " + strings.Join(p.KeyEnv, " or ")
		return o
	case p.Said:
		o.Detail = "no key is sent"
	default:
		o.Status, o.Detail = note, "no key is sent"
	}
	if p.Default == "" || p.Said {
		o.Detail += ", at " + p.URL
	}
	return o
}

// check asks all providers for their models at the same time.
func (o *offers) check(ctx context.Context, settings *config.Loaded, timeout time.Duration) {
	var done sync.WaitGroup
	for i := range o.Providers {
		if p := &o.Providers[i]; p.Status == found || p.Status == note {
			done.Go(func() { p.ask(ctx, settings, timeout) }) // ends when the provider answers or the timeout passes
		}
	}
	done.Wait()
}

// ask asks one provider for its models.
func (o *provided) ask(ctx context.Context, settings *config.Loaded, timeout time.Duration) {
	key, _, err := assembly.KeyOf(settings, o.provider)
	if err != nil {
		o.Status, o.Detail = broken, err.Error()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	names, err := assembly.MakeModel(o.provider, "", key).Models(ctx)
	failure, said := errors.AsType[*belay.ModelError](err)
	there := err == nil || said && assembly.Answered(failure)
	o.Reachable = &there
	failed := broken
	if !o.set {
		failed = note // a server that nobody configured does not have to run
	}
	switch {
	case err == nil:
		o.Status = found
		o.Detail += fmt.Sprintf(", answered in %s with %s", took(time.Since(began)), visible.Counted(len(names), "model"))
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

// list adds the models that are known without a request. It does this for providers that
// can be used or were named.
func (o *offers) list(settings *config.Loaded) {
	for i := range o.Providers {
		p := &o.Providers[i]
		if p.set && p.Models == nil {
			p.Models = infos(p.provider, knownModels(settings, p.provider))
		}
	}
}

// knownModels returns the names of models in the built-in table or the settings.
func knownModels(settings *config.Loaded, p *config.Provider) []string {
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

// showOffers prints the providers and their models as text.
func (a *app) showOffers(o *offers, checked, all bool) error {
	s := a.onOut
	dress := map[string]func(string) string{found: s.green, missing: s.yellow, broken: s.red, note: s.dim}
	var providers, models table
	models.add("MODEL", "WINDOW", "IN", "OUT", "CACHE READ", "WRITE")
	for i := range o.Providers {
		p := &o.Providers[i]
		line := p.Detail
		if p.Status == missing {
			line += ": " + p.Remedy
		}
		for i, line := range a.wrapped(line) {
			providers.add([]string{dress[p.Status](p.Status), ""}[min(i, 1)], []string{p.Name, ""}[min(i, 1)], line)
		}
		if p.Remedy != "" && p.Status != missing {
			for i, line := range a.wrapped(p.Remedy) {
				providers.add("", "", s.dim([]string{"→ ", "  "}[min(i, 1)]+line))
			}
		}
		shown := p.Models
		if !all {
			shown = shown[:min(len(shown), mostOffered)]
		}
		for _, m := range shown {
			models.add(m.Name, tokensOf(m.Window), amountOf(m.Price.In), amountOf(m.Price.Out), amountOf(m.Price.CacheRead), amountOf(m.Price.CacheWrite))
		}
		if left := len(p.Models) - len(shown); left > 0 {
			models.add(s.dim(fmt.Sprintf("… %d more: belay models %s", left, p.Name)))
		}
	}
	if err := providers.write(a.out, nil); err != nil {
		return err
	}
	if len(models.rows) > 1 {
		fmt.Fprintln(a.out)
		if err := models.write(a.out, s.dim); err != nil {
			return err
		}
		fmt.Fprintln(a.out, s.dim("window in tokens, prices in US dollars a million tokens; - means unknown"))
	}
	fmt.Fprintln(a.out)
	last := "tasks use " + s.bold(o.Model)
	if o.Problem != "" {
		last = s.red("a task cannot run") + ": " + o.Problem
	}
	if !checked {
		last += s.dim("\ncheck whether they answer: belay models --check")
	}
	_, err := fmt.Fprintln(a.out, last)
	return err
}

func tokensOf(n int) string {
	if n == 0 {
		return "-"
	}
	return visible.Grouped(n)
}

// amountOf formats a price with all its decimals, and at least two of them.
func amountOf(price float64) string {
	if price == 0 {
		return "-"
	}
	digits := strconv.FormatFloat(price, 'f', -1, 64)
	if _, cents, _ := strings.Cut(digits, "."); len(cents) < 2 {
		return strconv.FormatFloat(price, 'f', 2, 64)
	}
	return digits
}

// completeModels completes the name of a model: first its provider, then the known models
// of that provider.
func completeModels(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	settings, err := config.Load(&config.Options{Dir: cmd.Flag("dir").Value.String()})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	provider, _, named := strings.Cut(word, "/")
	var words []string
	if !named {
		for _, name := range append(settings.ProviderNames(), config.Scripted) {
			words = append(words, name+"/")
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
	}
	p, err := settings.Provider(provider)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range knownModels(settings, p) {
		words = append(words, provider+"/"+name)
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
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
