// Package declare loads hooks from files, so that they need no Go code. A file says what
// runs at which phase. This package makes subscriptions from the file.
//
// # Usage
//
// A file, YAML or JSON, lists hooks:
//
//	hooks:
//	  - id: no-prod
//	    phase: tool.pre
//	    match: { tools: [write, edit], when: '(clean(args.path) + "/").startsWith("/srv/prod/")' }
//	    run: ./check.sh            # or command: [..], worker: [..], webhook: {url: ..}, action: approve
//	    timeout: 5s
//
// [Load] reads files and reports every mistake with its line. [New] makes a [Set] from the
// declarations. You install its subscriptions like any others:
//
//	declared, err := declare.Load("hooks", "no-prod.yaml")
//	...
//	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginProject}, nil)
//	...
//	lease, err := runtime.Install(set.Subscriptions()...)
//
// To unload the hooks, drain the lease and close the set. After that, none of their
// processes is running.
//
// A command reads one JSON envelope from standard input, and answers by its exit code and
// its output. A worker gets many envelopes, in the protocol of package worker. A webhook
// gets the envelope as a POST request. All answers are strictly decoded into the output
// of the phase; `belay hooks schema` describes that output. docs/declared-hooks.md
// explains the files to their authors.
//
// # Who may run what
//
// This package runs everything that the declarations say. The caller decides with Trust
// and Confine in [Options] whether a file may run commands. The origin of the set and the
// grants of the runtime decide what the answers may contribute.
//
// # Concurrency
//
// A [Set] is safe for concurrent use. Each command and each worker runs in a process
// group of its own. Hooks that name the same worker program share one process.
//
// # Errors
//
// The errors of [Load] and [Parse] join one [FaultError] for each mistake. When a hook
// fails in a turn, the failure has a code of package hook: hook.executable_missing if the
// program is missing, hook.output_invalid if the answer is invalid, hook.timeout, or
// hook.error for everything else. The failure mode of the subscription decides what
// happens then. By default, a gate denies.
//
// # Testing
//
// Package hooktest can try a subscription of a set like any other subscription.
package declare
