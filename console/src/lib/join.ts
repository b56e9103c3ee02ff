/** The command with which another machine, or another process of this one, becomes a driver. */

/** Whether an address is of the controller's own machine: nobody else reaches it there. */
export const isLocal = (hostname: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** A name that no driver has: `driver2`. */
export function freeName(taken: readonly string[]): string {
  let number = 1;
  while (taken.includes(`driver${number}`)) number++;
  return `driver${number}`;
}

export interface Join {
  command: string;
  /** What makes the driver's token, where it does not find one by itself. A token is for one name. */
  token: string | null;
}

/** How a driver of this name joins a controller that is found at `origin`, and known by the fingerprint of its certificate. */
export function join(origin: string, fingerprint: string | null, name: string): Join {
  const base = `tidemark driver --join ${origin}`;
  const trust = fingerprint ? ` --trust sha256:${fingerprint}` : '';
  if (isLocal(new URL(origin).hostname) && !fingerprint) return { command: `${base} --name ${name}`, token: null };
  return {
    command: `${base}${trust} --token-file ${name}.token --name ${name}`,
    token: `tidemark token add ${name} --role driver > ${name}.token`,
  };
}
