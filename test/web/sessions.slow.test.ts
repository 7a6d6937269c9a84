import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTab, SCREEN_PATHS, startBrowser, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

let demo: ClaimedDemo;
let browser: Browser;

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

const addKey = (role: 'admin' | 'member' | 'auditor') => demo.api.addKey(demo.organization.orgId, role);
async function inStore(statement: string): Promise<void> {
  await demo.api.database.superuser.query(statement);
}

const cookieOf = async (page: Page) => (await page.context().cookies())[0]?.value;

async function signIn(page: Page, key: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'Your session has ended' });
  await dialog.getByLabel('API key').fill(key);
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
}

/** Opens a form, types into it, and returns the field. */
async function typeNote(page: Page) {
  await visit(page, '/settings/workspaces');
  await page.getByRole('button', { name: 'Create a workspace' }).first().click();
  const field = page.getByRole('dialog').getByLabel('Name', { exact: true });
  await field.fill('Typed for minutes');
  return field;
}

const submit = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true });

describe('a session', () => {
  it('gets a new id at each sign-in, and an id that another site planted is worth nothing', async () => {
    const key = await addKey('admin');
    const { page, close } = await openTab(browser, demo.api.baseUrl);
    const planted = 'a'.repeat(43);
    await page.context().addCookies([{ name: 'session', value: planted, url: demo.api.baseUrl }]);
    await page.goto('/');
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    const first = await cookieOf(page);
    expect(first).not.toBe(planted);
    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(await cookieOf(page)).not.toBe(first);
    // The cookie of the ended session opens nothing.
    const answer = await fetch(`${demo.api.baseUrl}/api/v1/session`, {
      headers: { Cookie: `session=${first}` },
    });
    expect(answer.status).toBe(401);
    await close();
  });

  it.each([
    [
      'is signed out in another tab',
      async (page: Page) => {
        const second = await page.context().newPage();
        await second.goto(new URL('/', page.url()).href);
        await second.getByRole('button', { name: 'Account' }).click();
        await second.getByRole('menuitem', { name: 'Sign out' }).click();
        await second.getByRole('heading', { name: 'Sign in to Trueup' }).waitFor();
        await second.close();
      },
    ],
    [
      'is revoked by an administrator',
      async (page: Page) => {
        const sessions = (await page.evaluate(async () => (await fetch('/api/v1/sessions')).json())) as Json;
        const { id } = sessions.sessions.find((one: Json) => one.is_current);
        await fetch(`${demo.api.baseUrl}/api/v1/sessions/${id}`, {
          method: 'DELETE',
          headers: { Authorization: `Bearer ${demo.organization.adminKey}` },
        });
      },
    ],
    [
      'has expired',
      async (page: Page) => {
        await inStore(`update sessions set last_seen_at = now() - interval '13 hours'`);
        // Sessions are kept for some seconds by the process that answers.
        const status = () => page.evaluate(async () => (await fetch('/api/v1/session')).status);
        await expect.poll(status, { timeout: 20_000 }).toBe(401);
      },
    ],
  ])('that %s in the middle of a task asks for a sign-in and loses nothing', async (_how, end) => {
    const key = await addKey('admin');
    const { page, close } = await openTab(browser, demo.api.baseUrl, key);
    const field = await typeNote(page);
    await end(page);
    await submit(page).click();
    await signIn(page, key);
    expect(await field.inputValue()).toBe('Typed for minutes');
    await close();
  });
});

describe('another organization that signs in', () => {
  const overview = (page: Page) => page.getByRole('heading', { name: 'Overview', level: 1 });
  const rows = (page: Page) => page.locator('main tbody tr');

  it('after the end of a session sees nothing of the former one', async () => {
    const stranger = await demo.api.addOrganization('A stranger');
    const { page, close } = await openTab(browser, demo.api.baseUrl, await addKey('admin'));
    const field = await typeNote(page);
    await page.evaluate(() =>
      fetch('/api/v1/session', { method: 'DELETE', headers: { 'X-Requested-With': 'dashboard' } }),
    );
    await submit(page).click();
    await signIn(page, stranger.adminKey);
    await overview(page).waitFor();
    expect(await field.count()).toBe(0);
    await visit(page, '/findings');
    expect(await rows(page).count()).toBe(0);
    await close();
  });

  it('in another tab ends what this tab shows, at the next look at it', async () => {
    const stranger = await demo.api.addOrganization('A stranger');
    const { page, close } = await openTab(browser, demo.api.baseUrl, await addKey('admin'));
    await visit(page, '/findings');
    expect(await rows(page).count()).toBeGreaterThan(0);
    await page.evaluate(async (key) => {
      const headers = { 'X-Requested-With': 'dashboard', 'Content-Type': 'application/json' };
      await fetch('/api/v1/session', { method: 'POST', headers, body: JSON.stringify({ api_key: key }) });
    }, stranger.adminKey);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await overview(page).waitFor();
    await visit(page, '/findings');
    expect(await rows(page).count()).toBe(0);
    await close();
  });
});

/** The texts of the buttons of a screen. */
async function buttonsOf(page: Page, path: string): Promise<string[]> {
  await visit(page, path);
  const names = await page
    .locator('main button:not([disabled]):not([data-row-button])')
    .evaluateAll((buttons) => buttons.map((button) => (button as { innerText: string }).innerText.trim()));
  return [...new Set(names.filter((name) => name !== ''))];
}

describe('an auditor', () => {
  it('sees no button on any screen whose request the API would refuse', async () => {
    const { page, close } = await openTab(browser, demo.api.baseUrl, await addKey('auditor'));
    const refused: string[] = [];
    page.on('response', (answer) => {
      if (answer.status() === 403) refused.push(`${answer.request().method()} ${answer.url()}`);
    });
    const [finding] = demo.disputes;
    for (const path of [...SCREEN_PATHS, `/findings/${finding.finding_id}`]) {
      const names = await buttonsOf(page, path);
      // A person may always end sessions of their own.
      for (const name of names.filter((one) => !one.startsWith('Sign out'))) {
        const button = page.locator('main').getByRole('button', { name, exact: true }).first();
        if (!(await button.isVisible().catch(() => false))) continue;
        await button.click({ timeout: 5_000 }).catch(() => undefined);
        const dialog = page.getByRole('dialog');
        const submit = dialog.locator('button[type=submit]:not([disabled])');
        if ((await submit.count()) > 0) refused.push(`${path}: ${name} opens a form`);
        if ((await page.locator('[role="dialog"], [role="listbox"], [role="menu"]').count()) > 0)
          await page.keyboard.press('Escape');
        if (new URL(page.url()).pathname !== path) await visit(page, path);
      }
    }
    expect(refused).toEqual([]);
    await close();
  });
});
