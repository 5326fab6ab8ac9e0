// Package declare is for hooks that need no Go: files say what runs at which phase, and
// this package makes subscriptions of them.
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
// [Load] reads files and reports every mistake with its line. [New] makes a [Set] of what
// they declare, whose subscriptions are installed like any other:
//
//	declared, err := declare.Load("hooks", "hooks/no-prod.yaml")
//	...
//	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginProject}, nil)
//	...
//	lease, err := runtime.Install(set.Subscriptions()...)
//
// To unload them, drain the lease and close the set: then no process of it is left.
//
// A command is given one JSON envelope on standard input and answers by its exit code and
// what it prints. A worker is given the same many times over, by the protocol of package
// worker. A webhook is posted the same. The answers of all three are read strictly into
// the phase's output: `belay hooks schema` describes it. docs/declared-hooks.md tells all of
// this to those who write such files.
//
// # Who may run what
//
// This package runs what it is given. Whether a file may have its commands run is for its
// caller to say, by Trust and Confine in [Options]; what its answers may contribute, by
// the origin and the grants of the runtime.
//
// # Concurrency
//
// A [Set] is safe for concurrent use. Each command is a process group of its own, and each
// worker is one that all hooks share which name the same program.
//
// # Errors
//
// The errors of [Load] and [Parse] join a [FaultError] for each mistake. In a turn a hook fails
// with a code of package hook: hook.executable_missing where there is no program to run,
// hook.output_invalid where its answer makes no sense, hook.timeout, and hook.error for
// all else. What a failure means is the subscription's failure mode: gates deny.
//
// # Testing
//
// Package hooktest tries a subscription of a set like any other.
package declare
