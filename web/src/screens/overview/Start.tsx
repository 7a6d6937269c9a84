import { lazy, Suspense } from 'react';
import { useMay } from '../../app/session';
import { ButtonLink } from '../../parts/forms/Button';
import { Card, Grid, Page } from '../../parts/Page';
import { Loading } from '../../parts/States';
import css from './Overview.module.css';

const DemoControl = lazy(() => import('../installation/DemoControl'));

/** The overview of an organization without bills and calls: three ways on. */
export function Start() {
  const may = useMay();
  return (
    <Page
      title="Overview"
      lead="This screen will show the money to get back from providers and the days behind it. It needs bills, calls, or both."
    >
      <Grid min={300}>
        {may({ scope: 'billing:write' }) && (
          <Card title="1. Connect a provider">
            <p className={css.way}>
              Reads the bills of OpenAI, Anthropic, Azure, AWS or Google with a key that may only read. Bills
              alone already show wrong rates.
            </p>
            <div>
              <ButtonLink kind="primary" href="/connections">
                Connect a provider
              </ButtonLink>
            </div>
          </Card>
        )}
        {may({ scope: 'keys:admin' }) && (
          <Card title="2. Send a first call">
            <p className={css.way}>
              Makes a key for your application and shows settings to copy. Observed calls are what bills are
              compared with.
            </p>
            <div>
              <ButtonLink href="/first-call">Send a first call</ButtonLink>
            </div>
          </Card>
        )}
        {may({ scope: 'org:admin' }) && (
          <Card title="3. Look at the demo">
            <p className={css.way}>
              90 days of an invented company, Demo Labs, in an organization of its own: calls, bills with
              planted mistakes, invoices and claims. It loads in about a minute.
            </p>
            <Suspense fallback={<Loading rows={1} />}>
              <DemoControl />
            </Suspense>
          </Card>
        )}
      </Grid>
    </Page>
  );
}
