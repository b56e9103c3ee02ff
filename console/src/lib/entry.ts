/** The login address that this page was opened by. Its code leaves the address bar and the history at once. */

export interface Entry {
  code: string;
  /** Whether a page of another site may have led here: then the user is asked first. The controller decides by the address. */
  confirm: boolean;
}

const silent = '/login';
const asking = '/login/confirm';

function take(): Entry | undefined {
  const { pathname, searchParams } = new URL(location.href);
  if (pathname !== silent && pathname !== asking) return undefined;
  history.replaceState(null, '', '/');
  return { code: searchParams.get('code') ?? '', confirm: pathname !== silent };
}

/** The login address, if this page was opened by one: looked at when the page is loaded, and never again. */
export const entry = take();
