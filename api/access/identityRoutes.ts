import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import type { IdentityFailure, PendingSignIn } from '../../adapters/identity/identityProvider.js';
import { signInPerson } from '../../usecases/access/personSignIn.js';
import type { ApiDeps } from '../deps.js';
import { loggerOf } from '../pipeline/requestLog.js';
import {
  endedPendingCookie,
  findPendingSignIn,
  findSessionSecret,
  pendingCookie,
  sessionCookie,
} from '../pipeline/sessionCookie.js';

const START = '/api/v1/session/oidc/start';
const CALLBACK = '/api/v1/session/oidc/callback';

/** Why a person is not signed in, as the dashboard's page reads it. */
type Refusal = IdentityFailure | 'no_role' | 'expired' | 'failed';

/**
 * Sign-in at the identity provider, for browsers: both answers are redirects, also where something is wrong, because a
 * person looks at them. There are no such addresses where no provider is set.
 */
export function identityRoutes(router: Router, deps: ApiDeps): void {
  const { identity, settings } = deps;
  if (!identity) return;
  router.get(START, async (ctx) => {
    ctx.state.operation = 'startIdentitySignIn';
    deps.limits.chargePublic(ctx);
    const baseUrl = settings.baseUrl();
    try {
      const { address, pending } = await identity.provider.begin(baseUrl + CALLBACK);
      ctx.set('Set-Cookie', pendingCookie(baseUrl, pending));
      redirect(ctx, address);
    } catch (error) {
      refuse(ctx, deps, error);
    }
  });
  router.get(CALLBACK, async (ctx) => {
    ctx.state.operation = 'finishIdentitySignIn';
    deps.limits.chargePublic(ctx);
    const baseUrl = settings.baseUrl();
    ctx.append('Set-Cookie', endedPendingCookie(baseUrl));
    const pending = findPendingSignIn(ctx.headers.cookie, baseUrl);
    if (!pending) return redirectToRefusal(ctx, 'expired');
    try {
      const secret = await finish(ctx, pending, deps, identity);
      if (secret === undefined) return redirectToRefusal(ctx, 'no_role');
      ctx.append('Set-Cookie', sessionCookie(baseUrl, secret));
      redirect(ctx, '/');
    } catch (error) {
      refuse(ctx, deps, error);
    }
  });
}

async function finish(
  ctx: RouterContext,
  pending: PendingSignIn,
  deps: ApiDeps,
  { provider, rules }: NonNullable<ApiDeps['identity']>,
): Promise<string | undefined> {
  const baseUrl = deps.settings.baseUrl();
  const claims = await provider.finish(new URL(`${baseUrl}${CALLBACK}${ctx.search}`), pending);
  return signInPerson(deps, claims, rules, {
    requestId: String(ctx.state.requestId),
    userAgent: ctx.headers['user-agent'],
    formerSecret: findSessionSecret(ctx.headers.cookie, baseUrl),
  });
}

function refuse(ctx: RouterContext, deps: ApiDeps, error: unknown): void {
  const reason = (error as { reason?: IdentityFailure }).reason;
  // The cause may contain what the provider sent, so the log has the reason alone.
  const line = { reason, code: (error as { code?: string }).code };
  const logger = loggerOf(ctx, deps);
  if (reason === undefined) logger.error({ err: error }, 'a sign-in at the identity provider failed');
  else logger.warn(line, 'a sign-in at the identity provider was refused');
  redirectToRefusal(ctx, reason ?? 'failed');
}

function redirectToRefusal(ctx: RouterContext, reason: Refusal): void {
  redirect(ctx, `/#/sign-in?problem=${reason}`);
}

function redirect(ctx: RouterContext, address: string): void {
  ctx.status = 302;
  ctx.set('Location', address);
  ctx.body = null;
  ctx.status = 302;
}
