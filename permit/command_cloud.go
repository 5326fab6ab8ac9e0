package permit

import "strings"

// cloudCommands are the command-line tools of clouds and of provisioning.
func cloudCommands(t table) {
	t.add("aws", awsCommand)
	t.add("gsutil s3cmd mc", bucketCommand)
	t.add("gcloud az bq", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "* project= zone= region= account= format= filter= subscription= g= resource-group= n= name= configuration= flags-file=! impersonate-service-account=!")
		if oneOf(word(o.rest, 0), "auth config init login logout account components feedback interactive") {
			if !oneOf(word(o.rest, 1), "list show describe") {
				c.zone(ZoneMachine, "uses or changes the user's cloud credentials")
				return
			}
		}
		if oneOf(word(o.rest, 0), "storage") {
			c.buckets(o.from(1))
			return
		}
		c.platformWords(o.rest)
	})
	t.add("terraform tofu terragrunt", terraformCommand)
	t.add("pulumi", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "* C= cwd= s= stack=")
		switch word(o.rest, 0) {
		case "destroy":
			c.zone(ZoneExternal, "changes resources in the cloud")
			c.protect(destroyData, "destroys resources")
		case "preview", "logs", "about", "whoami", "version":
			c.zone(ZoneNetwork, "runs code of the project and queries the cloud")
		default:
			c.platformWords(o.rest)
		}
	})
	t.add("ansible ansible-playbook ansible-pull ansible-console salt salt-call chef-client puppet knife", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		c.known(c.args)
		c.zone(ZoneMachine, "changes machines, including this one")
		o := parseOptions(c.args, "* a= args= m= module-name= i= e=")
		if oneOf(word(o.values("m", "module-name"), 0), "shell command raw script") || !o.has("m", "module-name") {
			for _, text := range o.values("a", "args") {
				c.child(text)
			}
		}
	})
	t.add("packer vagrant multipass virsh virt-install VBoxManage limactl lima colima qemu-system-x86_64 qemu-system-aarch64", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "*")
		if c.name == "vagrant" {
			c.zone(ZoneBuild, "runs the Vagrantfile of the project")
		}
		switch verb := word(o.rest, 0); {
		case verb == "fmt":
			c.zone(ZoneWorkspace, "")
			c.overwriteAll(o.from(1))
		case oneOf(verb, "status list ls validate global-status info"):
		default:
			c.zone(ZoneMachine, "changes virtual machines")
			if oneOf(verb, "destroy delete purge undefine unregistervm") {
				c.protect(destroyData, "removes a virtual machine")
			}
		}
	})
}

// awsCommand judges aws. Its words are a service, an operation and options.
func awsCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* profile= region= endpoint-url= output= query= color= ca-bundle=< cli-input-json= cli-input-yaml= recursive force delete include= exclude= acl= bucket= key= body=< dryrun")
	for _, u := range o.values("endpoint-url") {
		c.fetch(u)
	}
	for _, a := range c.args { // a value with one of these prefixes is a file
		for _, scheme := range []string{"file://", "fileb://"} {
			if _, file, ok := strings.Cut(a.text, scheme); ok {
				c.read(arg{text: file, known: a.known})
			}
		}
	}
	switch service, operation := word(o.rest, 0), word(o.rest, 1); {
	case service == "configure" || service == "sso" || service == "login":
		c.zone(ZoneMachine, "uses or changes the user's cloud credentials")
	case service == "s3":
		c.buckets(o.from(1))
		if operation != "ls" && operation != "presign" && (o.has("delete") || operation == "rm" || operation == "rb") {
			c.protect(destroyData, "deletes objects in the cloud")
		}
	case service == "ssm" && operation == "start-session", operation == "execute-command":
		c.zone(ZoneExternal, "runs a command on another machine")
	default:
		c.platformWords(o.from(1))
	}
}

// buckets judges commands on object stores. The words are a verb, then paths or URLs of
// objects.
func (c *invoked) buckets(words []arg) {
	places := words[min(1, len(words)):]
	isStore := func(a arg) bool { return strings.Contains(a.text, "://") }
	switch verb := word(words, 0); {
	case oneOf(verb, "ls list cat du stat head hash presign signurl"):
		c.zone(ZoneNetwork, "queries the cloud")
	case oneOf(verb, "cp mv sync rsync copy mirror") && len(places) > 1:
		for i, a := range places {
			switch last := i == len(places)-1; {
			case isStore(a) && last:
				c.zone(ZoneExternal, "changes objects in the cloud")
			case isStore(a):
				c.zone(ZoneNetwork, "fetches objects from the cloud")
				if verb == "mv" {
					c.zone(ZoneExternal, "changes objects in the cloud")
				}
			case last && a.text != "-":
				c.arrives(places[0], a)
			case last:
			case verb == "mv":
				c.remove(a)
			default:
				c.read(a)
			}
		}
	default:
		c.zone(ZoneExternal, "changes objects in the cloud")
		if oneOf(verb, destroyingVerbs) {
			c.protect(destroyData, "deletes objects in the cloud")
		}
	}
}

func bucketCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* o= h= u= c=< config=< recursive r m d")
	c.buckets(o.rest)
	if word(o.rest, 0) == "rsync" && o.has("d") {
		c.protect(destroyData, "deletes objects in the cloud")
	}
}

func terraformCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "*- chdir= var= var-file=< state=< state-out=> out=> backup=> backend-config= plugin-dir=! target= destroy from-module=")
	judge := func() { c.terraform(o) }
	if dir, ok := o.value("chdir"); ok {
		c.in(dir, judge)
		return
	}
	judge()
}

func (c *invoked) terraform(o *options) {
	switch word(o.rest, 0) {
	case "", "version", "-version", "help":
	case "fmt":
		if !o.has("check") {
			c.zone(ZoneWorkspace, "")
			c.writeAll(o.from(1))
		}
	case "validate", "graph", "metadata":
		c.zone(ZoneBuild, "runs the providers of the project")
	case "init", "get", "plan", "show", "output", "providers", "test":
		c.zone(ZoneNetwork, "fetches from the network")
	case "state":
		c.terraformState(word(o.rest, 1))
	case "workspace":
		c.zone(ZoneNetwork, "queries the cloud")
		if word(o.rest, 1) == "delete" {
			c.zone(ZoneExternal, "changes resources in the cloud")
			c.protect(destroyData, "deletes a workspace")
		}
	case "destroy":
		c.zone(ZoneExternal, "changes resources in the cloud")
		c.protect(destroyData, "destroys resources")
	case "apply", "import", "taint", "untaint", "force-unlock", "refresh", "run-all", "run":
		c.zone(ZoneExternal, "changes resources in the cloud")
		destroys := o.has("destroy")
		for _, a := range o.rest {
			destroys = destroys || a.text == "destroy"
		}
		if destroys {
			c.protect(destroyData, "destroys resources")
		}
	default: // console, login, …
		c.zone(ZoneMachine, "Belay does not know what it does; it may change files outside the project")
	}
}

func (c *invoked) terraformState(verb string) {
	if oneOf(verb, "list show pull") {
		c.zone(ZoneNetwork, "queries the cloud")
		return
	}
	c.zone(ZoneExternal, "changes resources in the cloud")
	if verb == "rm" || verb == "push" {
		c.protect(destroyData, "removes resources from the state")
	}
}
