package permit

import "strings"

// containerCommands manage containers on this machine. A program that can use the container
// daemon has full access to the machine.
func containerCommands(t table) {
	t.add("docker podman nerdctl", dockerCommand)
	t.add("docker-compose podman-compose", func(c *invoked) {
		if !asksOnly(c) {
			c.compose(c.args)
		}
	})
	t.add("buildah skopeo kaniko crane ctr crictl lxc incus systemd-nspawn machinectl toolbox distrobox apptainer singularity runc crun", func(c *invoked) {
		if !asksOnly(c) {
			c.known(c.args)
			c.zone(ZoneMachine, "uses or changes containers on this machine")
		}
	})
}

func dockerCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+H=! host=! c=! context=! config=! D debug l= log-level= tls tlscacert=< tlscert=< tlskey=< tlsverify v version url=! connection=! root=! runroot=! r remote")
	words := o.from(1)
	switch verb := word(o.rest, 0); verb {
	case "":
		if len(o.rest) > 0 {
			c.unknown("cannot determine what it does")
		}
	case "ps", "images", "inspect", "logs", "version", "info", "top", "stats", "port", "diff", "history", "events", "help":
	case "search":
		c.zone(ZoneNetwork, "queries the network")
	case "pull":
		c.zone(ZoneNetwork, "fetches from the network")
		c.denyMetadataHosts(words)
	case "push":
		c.zone(ZoneExternal, "publishes")
		c.denyMetadataHosts(words)
	case "compose":
		c.compose(words)
	case "volume", "system", "image", "container", "network", "builder", "buildx", "context", "manifest", "pod", "machine", "secret", "stack", "service", "swarm", "node", "plugin":
		c.dockerObject(verb, words)
	case "rm", "rmi":
		c.zone(ZoneMachine, "changes containers on this machine")
		if p := parseOptions(words, "*"); p.has("v", "volumes", "f", "force", "a", "all") {
			c.protect(destroyData, "removes containers or images, even if they are in use")
		}
	default: // run, exec, build, cp, start, stop, kill, …
		c.zone(ZoneMachine, "runs or changes containers on this machine")
		c.denyMetadataHosts(words)
	}
}

func (c *invoked) dockerObject(object string, words []arg) {
	o := parseOptions(words, "*")
	switch verb := word(o.rest, 0); {
	case oneOf(verb, "ls list inspect history logs df info ps top port show events"):
	case verb == "pull":
		c.zone(ZoneNetwork, "fetches from the network")
		c.denyMetadataHosts(o.from(1))
	case verb == "push":
		c.zone(ZoneExternal, "publishes")
		c.denyMetadataHosts(o.from(1))
	default:
		c.zone(ZoneMachine, "changes containers on this machine")
		if verb == "prune" || oneOf(verb, "rm remove reset") && (object == "volume" || object == "machine" || object == "stack") {
			c.protect(destroyData, "removes volumes, images or containers")
		}
	}
}

func (c *invoked) compose(words []arg) {
	o := c.options(words, "+f=< file=< p= project-name= profile= env-file=< project-directory= parallel= ansi= progress= compatibility dry-run all-resources v version verbose")
	rest := parseOptions(o.from(1), "*")
	switch verb := word(o.rest, 0); verb {
	case "", "ps", "logs", "ls", "images", "top", "port", "version", "events", "stats":
	case "config", "convert":
		if !rest.has("q", "quiet", "services", "volumes", "images", "profiles") {
			c.zone(ZoneMachine, "it shows files that the compose file refers to: use --quiet to only check the compose file")
		}
	case "pull":
		c.zone(ZoneNetwork, "fetches from the network")
	case "push":
		c.zone(ZoneExternal, "publishes")
	default:
		c.zone(ZoneMachine, "runs or changes containers on this machine")
		if verb == "down" && rest.has("v", "volumes", "rmi") || verb == "rm" && rest.has("v") {
			c.protect(destroyData, "removes volumes")
		}
	}
}

func clusterCommands(t table) {
	t.add("kubectl oc k3s", kubectlCommand)
	t.add("helm helmfile", helmCommand)
	t.add("kind minikube k3d kubeadm eksctl kops argocd flux istioctl linkerd skaffold tilt", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "*")
		switch verb := word(o.rest, 0); {
		case oneOf(verb, "get status list ls version"):
			c.zone(ZoneNetwork, "queries the cluster")
		default:
			c.zone(ZoneMachine, "changes clusters or this machine")
			if oneOf(verb, "delete reset destroy") {
				c.protect(destroyData, "deletes a cluster")
			}
		}
	})
}

func kubectlCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* n= namespace= f= filename= k=< kustomize=< o= output= l= selector= c= container= context= cluster= user= kubeconfig=! s= server= token= as= as-group= certificate-authority=< "+
		"client-certificate=< client-key=< p= patch= patch-file=< type= replicas= image= from-file= from-literal= env= cache-dir=> v= tail= since= sort-by= field-selector= template= force")
	for _, s := range o.values("s", "server") {
		c.fetch(s)
	}
	for _, f := range o.values("f", "filename") {
		if strings.Contains(f.text, "://") {
			c.fetch(f)
		} else if o.has("f", "filename") && word(o.rest, 0) != "logs" {
			c.read(f)
		}
	}
	for _, f := range o.values("from-file") {
		c.read(arg{text: f.text[strings.IndexByte(f.text, '=')+1:], known: f.known})
	}
	switch verb := word(o.rest, 0); verb {
	case "":
	case "get", "describe", "logs", "log", "top", "explain", "version", "api-resources", "api-versions", "cluster-info", "diff", "events", "wait", "auth", "kustomize", "completion":
		c.zone(ZoneNetwork, "queries the cluster")
	case "config":
		if o.may("raw") {
			c.zone(ZoneMachine, "shows the user's cluster credentials")
		}
		if !oneOf(word(o.rest, 1), "view get-contexts current-context get-clusters get-users") {
			c.zone(ZoneMachine, "changes the user's kubectl settings")
		}
	case "delete", "drain":
		c.zone(ZoneExternal, "changes the cluster")
		c.protect(destroyData, "deletes resources of the cluster")
	case "replace":
		c.zone(ZoneExternal, "changes the cluster")
		if o.has("force") {
			c.protect(destroyData, "deletes resources of the cluster")
		}
	case "rollout":
		if oneOf(word(o.rest, 1), "status history") {
			c.zone(ZoneNetwork, "queries the cluster")
		} else {
			c.zone(ZoneExternal, "changes the cluster")
		}
	case "apply", "create", "edit", "patch", "scale", "autoscale", "set", "label", "annotate", "expose", "run", "exec", "attach", "cp", "port-forward", "proxy", "debug", "cordon", "uncordon", "taint",
		"certificate":
		c.zone(ZoneExternal, "changes the cluster")
		if verb == "apply" && o.has("prune") {
			c.protect(destroyData, "deletes resources of the cluster")
		}
	default:
		c.unknown("Belay does not know what kubectl " + shown(verb) + " does")
	}
}

func helmCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* post-renderer=$ f=< values=< n= namespace= kubeconfig=! kube-context= version= set= set-string= set-file= repo= d=> destination=> output-dir=> o= output= registry-config=! repository-config=! b=! helm-binary=!")
	switch verb := word(o.rest, 0); verb {
	case "":
	case "list", "ls", "status", "get", "history", "show", "inspect", "search", "diff":
		c.zone(ZoneNetwork, "queries the cluster")
	case "lint", "template", "env", "version":
		c.zone(ZoneBuild, "renders templates of the project")
	case "create", "package":
		c.zone(ZoneWorkspace, "")
		c.writeAll(o.from(1))
	case "dependency", "dep", "pull", "fetch":
		c.zone(ZoneNetwork, "fetches from the network")
	case "uninstall", "delete", "del", "un", "destroy":
		c.zone(ZoneExternal, "changes the cluster")
		c.protect(destroyData, "deletes resources of the cluster")
	case "repo", "registry", "plugin":
		c.zone(ZoneMachine, "changes the user's helm settings")
	default: // install, upgrade, rollback, test, push
		c.zone(ZoneExternal, "changes the cluster")
	}
}
