// Package declare loads hooks from files, without Go: a file says what runs at which
// phase, and this package makes subscriptions of it.
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
// [Load] reads files and reports every mistake with its line. [New] makes a [Set] of the
// declarations. Its subscriptions are installed like any other:
//
//	declared, err := declare.Load("hooks", "no-prod.yaml")
//	...
//	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginProject}, nil)
//	...
//	lease, err := runtime.Install(set.Subscriptions()...)
//
// To unload them, drain the lease and close the set. Then none of its processes is
// left.
//
// A command reads one JSON envelope from standard input and answers by its exit code and
// its output. A worker gets many envelopes, by the protocol of package worker. A webhook
// gets the envelope as a POST request. The answers of all three are read strictly into
// the phase's output: `belay hooks schema` describes it. docs/declared-hooks.md explains the
// files to their authors.
//
// # Who may run what
//
// This package runs what it is given. The caller decides by Trust and Confine in
// [Options] whether a file may run commands. The origin and the grants of the runtime
// decide what its answers may contribute.
//
// # Concurrency
//
// A [Set] is safe for concurrent use. Each command runs in a process group of its own. So
// does each worker; hooks that name the same program share one worker.
//
// # Errors
//
// The errors of [Load] and [Parse] join a [FaultError] for each mistake. In a turn a hook fails
// with a code of package hook: hook.executable_missing if the program is missing,
// hook.output_invalid if the answer is invalid, hook.timeout, and hook.error for everything
// else. The subscription's failure mode decides what a failure means: gates deny.
//
// # Testing
//
// Package hooktest tries a subscription of a set like any other.
package declare
