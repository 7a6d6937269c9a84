import type { CountedScope } from '../installation/settings.js';
import type { CallRecord } from './event.js';

/** Why a call is left out that another instrumentation is to tell: counted beside the reasons of rejections. */
export const SCOPE_NOT_COUNTED = 'scope_not_counted';

type Told = Pick<CallRecord, 'serviceName' | 'scopeName'>;

/**
 * Says of a call whether it counts. A service that is named in the list counts by the scopes that the list names for
 * it, and by no other; every other service counts by all of its scopes. So the answer depends on the call alone, never
 * on what came before it.
 */
export function countedBy(countedScopes: readonly CountedScope[]): (call: Told) => boolean {
  const scopesByService = new Map<string, Set<string>>();
  for (const { service, scope } of countedScopes) {
    const scopes = scopesByService.get(service ?? '');
    if (scopes) scopes.add(scope);
    else scopesByService.set(service ?? '', new Set([scope]));
  }
  return ({ serviceName, scopeName }) => scopesByService.get(serviceName)?.has(scopeName) ?? true;
}
