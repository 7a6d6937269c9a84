import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, SCREEN_PATHS, startBrowser, type Tab, visit } from '../support/browser.js';
import { type Relay, startRelay } from '../support/relay.js';

let api: TestApi;
let browser: Browser;
/** The browser's way to the service, which the tests interrupt. */
let relay: Relay;
let isDown = false;
let engine: 'up' | 'degraded' = 'up';

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi({ temporalStatus: async () => engine }), startBrowser()]);
  const { port } = new URL(api.baseUrl);
  relay = await startRelay(
    { host: '127.0.0.1', port: Number(port) },
    (client, upstream) => {
      client.pipe(upstream);
      upstream.pipe(client);
    },
    () => !isDown,
  );
});

afterAll(async () => {
  await browser.close();
  await relay.close();
  await api.close();
});

beforeEach(() => {
  isDown = false;
});

const open = (): Promise<Tab> => openTab(browser, `http://127.0.0.1:${relay.port}`, api.adminKey);

function stop(): void {
  isDown = true;
  relay.breakAll();
}

describe('the service restarts', () => {
  it('while a form is open: the form keeps its text, the screen says what is so, and the next try works', async () => {
    const { page, close } = await open();
    await visit(page, '/settings/workspaces');
    await page.getByRole('button', { name: 'Create a workspace' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('Search team');
    await dialog.getByLabel('Project of its calls (optional)').fill('search');
    stop();
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog.getByText('The service does not answer').waitFor();
    expect(await dialog.getByLabel('Name', { exact: true }).inputValue()).toBe('Search team');
    isDown = false;
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    const { workspaces } = (await api.get('/api/v1/workspaces')).body;
    expect(workspaces.map(({ name }: { name: string }) => name)).toEqual(['Search team']);
    await close();
  });

  it('while a screen is read: it keeps its figures with a notice, and asks again by itself', async () => {
    const { page, close } = await open();
    await visit(page, '/settings/workspaces');
    await page.getByText('Search team').first().waitFor();
    stop();
    await page.getByText('What you see may be old').waitFor();
    expect(await page.getByText('Search team').count()).toBeGreaterThan(0);
    await api.post('/api/v1/workspaces', { name: 'Added meanwhile', project_id: 'meanwhile' });
    isDown = false;
    await page.getByText('Added meanwhile').first().waitFor();
    await page.getByText('What you see may be old').waitFor({ state: 'detached' });
    await close();
  });

  it('before the first answer: the screen says so and opens once the service answers', async () => {
    const { page, close } = await open();
    await visit(page, '/');
    stop();
    await page.getByRole('link', { name: 'Alerts' }).click();
    await page.getByText('What you see may be old').waitFor();
    isDown = false;
    await page.getByRole('heading', { name: 'Alerts', level: 1 }).waitFor();
    await close();
  });
});

describe('Temporal is down', () => {
  it('every screen works and says that runs wait', async () => {
    engine = 'degraded';
    const { page, faults, close } = await open();
    for (const path of SCREEN_PATHS) {
      await visit(page, path);
      await page.getByText('The workflow engine does not answer: runs wait').waitFor();
      expect(await page.getByText('The request failed').count(), path).toBe(0);
    }
    expect(faults).toEqual([]);
    await close();
  });

  it('a run that is asked for waits in the queue', async () => {
    const { page, close } = await open();
    await visit(page, '/gaps');
    await page.getByRole('button', { name: 'Match again' }).click();
    await page.getByText('Matching: queued').waitFor();
    const { runs } = (await api.get('/api/v1/reconciliation/gap-explorer/runs')).body;
    expect(runs.map(({ status }: { status: string }) => status)).toEqual(['queued']);
    engine = 'up';
    await close();
  });
});

describe('the network is slow', () => {
  it('a skeleton stands until the answer comes, and a second press sends nothing', async () => {
    const { page, close } = await open();
    const sent = await slowDown(page, 700);
    await page.goto('/settings/workspaces');
    await page.locator('[data-loading]').first().waitFor();
    await page.getByText('Search team').first().waitFor();
    await page.getByRole('button', { name: 'Create a workspace' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('Pressed twice');
    await dialog.getByLabel('Project of its calls (optional)').fill('twice');
    const submit = dialog.locator('button[type=submit]');
    await submit.dblclick();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(sent.filter((line) => line === 'POST /api/v1/workspaces')).toHaveLength(1);
    await close();
  });

  /** Sends a form of one field by Enter, and again once two frames are drawn. */
  const enterTwice = async (page: Page, field: Locator, text: string) => {
    await field.fill(text);
    await field.press('Enter');
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    await field.press('Enter');
  };
  /** A page so busy that its timers come late. */
  const openBusy = async () => {
    const tab = await open();
    await tab.page.addInitScript(
      'const start = setTimeout; setTimeout = (task, ms = 0, ...values) => start(task, ms + 300, ...values)',
    );
    return { ...tab, sent: await slowDown(tab.page, 700) };
  };

  it('a dialog is sent once though the timers of a busy page come late', async () => {
    await api.post('/api/v1/workspaces', { name: 'To be renamed', project_id: 'renamed' });
    const { page, sent, close } = await openBusy();
    await page.goto('/settings/workspaces');
    await page.getByRole('button', { name: 'Rename To be renamed' }).click();
    const dialog = page.getByRole('dialog');
    await enterTwice(page, dialog.getByLabel('Name', { exact: true }), 'Sent once');
    await dialog.waitFor({ state: 'detached' });
    expect(sent.filter((line) => line.startsWith('PATCH'))).toHaveLength(1);
    await close();
  });

  it('the first key is made once though the timers of a busy page come late', async () => {
    const { page, sent, close } = await openBusy();
    await page.goto('/first-call');
    await enterTwice(page, page.getByLabel('Name of the key'), 'made once');
    await page.getByText('Copy the key now').waitFor();
    expect(sent.filter((line) => line === 'POST /api/v1/keys')).toHaveLength(1);
    await close();
  });
});

/** Delays each request to the API; returns the list of what is sent. */
async function slowDown(page: Page, ms: number): Promise<string[]> {
  const sent: string[] = [];
  await page.route('**/api/**', async (route) => {
    const request = route.request();
    sent.push(`${request.method()} ${new URL(request.url()).pathname}`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await route.continue().catch(() => undefined);
  });
  return sent;
}
