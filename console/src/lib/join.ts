/** The command with which another machine, or another process of this one, becomes a driver. */

/** Whether an address is of the controller's own machine: nobody else reaches it there. */
export const isLocal = (hostname: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** The command for a controller that is found at `origin`. On its own machine drivers find their token by themselves. */
export function joinCommand(origin: string, fingerprint: string | null): string {
  const trust = fingerprint ? ` --trust sha256:${fingerprint}` : '';
  const token = isLocal(new URL(origin).hostname) && !fingerprint ? '' : ' --token-file drivers.token';
  return `tidemark driver --join ${origin}${trust}${token}`;
}
