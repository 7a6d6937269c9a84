import { type ComponentType, type LazyExoticComponent, lazy } from 'react';
import { askHealth } from '../api/client';

const WAIT_MS = 2_000;
/** A page that loaded anew this short a time ago does not do so again. */
const RELOAD_MS = 10_000;
/** Milliseconds after which a part that can wait loads although the page is busy. */
const IDLE_MS = 1_000;
const RELOADED_AT = 'reloaded-at';

/**
 * A component whose code loads when it is first shown. Browsers keep the failure of a module until the page loads anew: a
 * screen does so once the service answers, for then nothing is typed on it yet; another part stays away until a screen does.
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of React.lazy
export function lazyPart<T extends ComponentType<any>>(
  load: () => Promise<{ default: T }>,
  { isScreen = false, canWait = false } = {},
): LazyExoticComponent<T> {
  return lazy(async () => {
    if (canWait) await untilIdle();
    try {
      return await load();
    } catch (error) {
      while (!(await askHealth('/healthz'))?.ok) await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      if (isScreen) {
        if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < RELOAD_MS) throw error;
        sessionStorage.setItem(RELOADED_AT, String(Date.now()));
        window.location.reload();
      }
      return new Promise<never>(() => undefined);
    }
  });
}

function untilIdle(): Promise<void> {
  return new Promise((resolve) => {
    if ('requestIdleCallback' in window) requestIdleCallback(() => resolve(), { timeout: IDLE_MS });
    else setTimeout(resolve);
  });
}
