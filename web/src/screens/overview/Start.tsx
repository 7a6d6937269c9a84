import { useMay } from '../../app/session';
import { ButtonLink } from '../../parts/forms/Button';
import { CopyButton } from '../../parts/forms/CopyButton';
import { Card, Grid, Page } from '../../parts/Page';
import css from './Overview.module.css';

const DEMO_COMMAND = 'npm run demo';

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
        <Card title="3. Load the demo">
          <p className={css.way}>
            90 days of an invented company, Demo Labs, in an organization of its own. The command prints a
            link that signs in there; <code>npm run demo:reset</code> removes it.
          </p>
          <div className={css.command}>
            <code>{DEMO_COMMAND}</code>
            <CopyButton text={DEMO_COMMAND} label="Copy" />
          </div>
        </Card>
      </Grid>
    </Page>
  );
}
