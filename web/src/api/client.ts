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

export { onRunStarted, onSignedOut };

/** Every request of the dashboard: it carries the header that forms of other sites cannot send. */
export async function dashboardFetch(request: Request): Promise<Response> {
  request.headers.set('X-Requested-With', 'dashboard');
  const response = await fetch(request);
  if (response.status === 401 && new URL(request.url).pathname !== '/api/v1/session') signedOut();
  const statusUrl = response.status === 202 ? response.headers.get('Location') : null;
  if (statusUrl) runStarted(statusUrl);
  // A proxy before a service that is down answers without a problem of the API; it counts as a failed connection.
  if (response.status >= 500 && !response.headers.get('Content-Type')?.includes('json'))
    throw new TypeError(`status ${response.status} without a problem`);
  return response;
}

/** One typed function for each method: `api.GET('/api/v1/claims', { params })`. */
export const api = createFetchClient<paths>({ baseUrl: window.location.origin, fetch: dashboardFetch });

/** TanStack Query hooks over the same paths: `query.useQuery('get', '/api/v1/claims', { params })`. */
export const query = createQueryHooks(api);

/** Whether a caught value is a problem of the API; anything else is a fault of the network or of this page. */
export function isProblem(error: unknown): error is Problem {
  return typeof error === 'object' && error !== null && 'code' in error && 'detail' in error;
}

const asSentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** One sentence for a person. */
export function errorText(error: unknown): string {
  if (isProblem(error))
    return asSentence(error.errors?.map((one) => `${one.field}: ${one.message}`).join(' · ') || error.detail);
  if (error instanceof TypeError)
    return 'The service does not answer. Check that it runs; this page tries again.';
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
