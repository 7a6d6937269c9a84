import type Router from '@koa/router';
import { endMails, UNSUBSCRIBE_PATH } from '../../usecases/webhooks/unsubscribe.js';
import type { ApiDeps } from '../deps.js';
import { IncomingBody } from '../pipeline/body.js';

/** Bytes of a request's body, which has a token or two words. */
const BODY_BYTES_MAX = 4_096;

/** Reads the token from the fragment, because browsers send no fragment to a server, so it reaches no log. */
const BOOT = `addEventListener('load', () => {
  const [form, said] = ['form', 'said'].map((id) => document.getElementById(id));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const token = location.hash.slice(1) || new URLSearchParams(location.search).get('token') || '';
    const answer = await window.fetch('${UNSUBSCRIBE_PATH}', { method: 'POST', body: new URLSearchParams({ token }) });
    said.textContent = answer.ok ? 'Done: these mails have ended.' : 'That did not work. Please try again later.';
    form.hidden = answer.ok;
  });
});`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>End these mails</title>
<link rel="icon" href="data:,">
<script src="${UNSUBSCRIBE_PATH}/boot.js" defer></script>
</head>
<body>
<main>
<h1>End these mails</h1>
<form id="form"><button type="submit">End the mails to this address</button></form>
<p id="said" role="status"></p>
<noscript>Use the button of your mail program that ends these mails, or ask an administrator of Trueup.</noscript>
</main>
</body>
</html>
`;

const POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * The end of mails by their recipient, without a key (RFC 8058). Mail programs post to the address in the header
 * List-Unsubscribe, which has the token in its query; people open the page, which posts the token of its fragment. Every
 * POST has the same answer, so that an answer does not show whether a token exists.
 */
export function unsubscribeRoutes(router: Router, deps: ApiDeps): void {
  router.get(UNSUBSCRIBE_PATH, (ctx) => {
    ctx.state.operation = 'unsubscribePage';
    ctx.set('Content-Security-Policy', POLICY);
    ctx.set('Content-Type', 'text/html; charset=utf-8');
    ctx.body = PAGE;
  });
  router.get(`${UNSUBSCRIBE_PATH}/boot.js`, (ctx) => {
    ctx.state.operation = 'unsubscribePage';
    ctx.set('Content-Type', 'text/javascript; charset=utf-8');
    ctx.body = BOOT;
  });
  router.post(UNSUBSCRIBE_PATH, async (ctx) => {
    ctx.state.operation = 'unsubscribe';
    deps.limits.chargePublic(ctx);
    const hold = (bytes: number) => deps.limits.holdBody(ctx, bytes);
    const body = await new IncomingBody(ctx.req, { hold }).bytes(BODY_BYTES_MAX);
    // Multipart bodies only have the two words of RFC 8058; the token of such a request is in its query.
    const token = new URLSearchParams(body.toString('utf8')).get('token') ?? ctx.query.token;
    await endMails(deps, typeof token === 'string' ? token : '');
    ctx.set('Content-Type', 'text/plain; charset=utf-8');
    ctx.body = 'These mails have ended.\n';
  });
}
