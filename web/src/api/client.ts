import createFetchClient from 'openapi-fetch';
import createQueryHooks from 'openapi-react-query';
import type { components, paths } from './schema';

export type { components, paths };

/** A problem+json answer of the API. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id?: string;
  errors?: { in: string; field: string; message: string }[];
}

/** Keeps listeners; its first function adds one and returns the function that removes it. */
function listenersOf<Args extends unknown[]>() {
  const listeners = new Set<(...args: Args) => void>();
  const add = (listener: (...args: Args) => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const call = (...args: Args) => {
    for (const listener of listeners) listener(...args);
  };
  return [add, call] as const;
}

/** Calls the listener when a request finds that the session has ended. */
const [onSignedOut, signedOut] = listenersOf<[]>();

/** Calls the listener with the status URL of each run that this page starts. */
const [onRunStarted, runStarted] = listenersOf<[url: string]>();

/** Calls the listener when a request gets no answer of the service. */
const [onUnanswered, unanswered] = listenersOf<[]>();

export { onRunStarted, onSignedOut, onUnanswered };

/** Asks the service how it is; undefined: no answer. */
export async function askHealth(path: '/healthz' | '/readyz'): Promise<Response | undefined> {
  try {
    return await fetch(path);
  } catch {
    if (path === '/healthz') unanswered();
    return undefined;
  }
}

/** Every request of the dashboard: it carries the header that forms of other sites cannot send. */
export async function dashboardFetch(request: Request): Promise<Response> {
  request.headers.set('X-Requested-With', 'dashboard');
  try {
    const response = await fetch(request);
    if (response.status === 401 && new URL(request.url).pathname !== '/api/v1/session') signedOut();
    const statusUrl = response.status === 202 ? response.headers.get('Location') : null;
    if (statusUrl) runStarted(statusUrl);
    // A proxy before a service that is down answers without a problem of the API; it counts as a failed connection.
    if (response.status >= 500 && !response.headers.get('Content-Type')?.includes('json'))
      throw new TypeError(`status ${response.status} without a problem`);
    return response;
  } catch (error) {
    if (!request.signal.aborted) unanswered();
    throw error;
  }
}

/** One typed function for each method: `api.GET('/api/v1/claims', { params })`. */
export const api = createFetchClient<paths>({ baseUrl: window.location.origin, fetch: dashboardFetch });

const hooks = createQueryHooks(api);

/**
 * TanStack Query hooks over the same paths: `query.useQuery('get', '/api/v1/claims', { params })`. A screen that has an
 * answer keeps it, and what is typed beside it, while a later request fails or waits for a new sign-in.
 */
export const query = {
  ...hooks,
  useQuery: ((...args: Parameters<typeof hooks.useQuery>) => {
    const result = hooks.useQuery(...args) as { data: unknown; error: unknown };
    if (result.data === undefined || result.error === null || !isPassing(result.error)) return result;
    return { ...result, error: null, isError: false };
  }) as unknown as typeof hooks.useQuery,
};

/** Whether the same request may succeed later: no answer, a fault of the service, too many requests, or no session. */
function isPassing(error: unknown): boolean {
  return !isProblem(error) || error.status >= 500 || error.status === 429 || error.status === 401;
}

/** Whether a caught value is a problem of the API; anything else is a fault of the network or of this page. */
export function isProblem(error: unknown): error is Problem {
  return typeof error === 'object' && error !== null && 'code' in error && 'detail' in error;
}

const asSentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** One sentence for a person. */
export function errorText(error: unknown): string {
  if (isProblem(error))
    return asSentence(error.errors?.map((one) => `${one.field}: ${one.message}`).join(' · ') || error.detail);
  if (error instanceof TypeError) return 'The service does not answer. Check that it runs, then try again.';
  return error instanceof Error ? error.message : String(error);
}

/** The sentence about one field of the request's body, to show beside it. */
export function fieldError(error: unknown, field: string): string | undefined {
  return isProblem(error) ? error.errors?.find((one) => one.field === field)?.message : undefined;
}

/** A form with a file as the API takes it; empty fields are left out. Use as bodySerializer. */
export function toFormData(body: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(body)) if (value) form.append(name, value as string | Blob);
  return form;
}
