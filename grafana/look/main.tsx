// Draws one dashboard's JSON (window.DASHBOARD) from a live Prometheus (window.PROM_URL). Not a Grafana server: there are no
// alert states, annotations, permissions or provisioning here.

import React from 'react';
import { createRoot } from 'react-dom/client';
import { EventBusSrv } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import * as runtime from '@grafana/runtime';
import {
  CustomVariable, DataSourceVariable, EmbeddedScene, QueryVariable, SceneControlsSpacer, SceneDataTransformer, SceneGridItem, SceneGridLayout,
  SceneGridRow, SceneQueryRunner, SceneTimePicker, SceneTimeRange, SceneVariableSet, VariableValueSelectors, VizPanel,
} from '@grafana/scenes';
import { GlobalStyles, PortalContainer, ThemeContext } from '@grafana/ui';
import { plugin, register, theme } from './panels';
import { run, source } from './source';

const dashboard = (window as any).DASHBOARD;
const ZONE = 'utc';

function start() {
  const config: any = runtime.config;
  Object.assign(config, { theme2: theme, featureToggles: {}, panels: {}, buildInfo: { version: '12.4.10' } });
  config.bootData = { user: { timezone: ZONE, weekStart: '' }, settings: {}, navTree: [] };
  const settings = { ...source, isDefault: true, jsonData: {}, access: 'proxy', readOnly: true };
  const services: any = runtime;
  services.setDataSourceSrv({ get: async () => source, getList: () => [settings], getInstanceSettings: () => settings, reload() {}, registerRuntimeDataSource() {} });
  services.setRunRequest(run);
  services.setAppEvents?.(new EventBusSrv());
  services.setTemplateSrv({ getVariables: () => [], replace: (text: string) => text ?? '', containsTemplate: () => false, updateTimeRange() {} });
  services.setBackendSrv?.({ get: async () => ({}) });
  services.setEchoSrv({ addEvent() {}, flush() {}, addBackend() {} });
  services.setPluginImportUtils({ importPanelPlugin: async (kind: string) => plugin(kind), getPanelPluginFromCache: plugin });
  register();
}

function variable(each: any) {
  const common = { name: each.name, label: each.label, isMulti: each.multi, includeAll: each.includeAll };
  switch (each.type) {
    case 'datasource':
      return new DataSourceVariable({ ...common, pluginId: 'prometheus', value: 'prom', text: 'prom' });
    case 'query':
      return new QueryVariable({ ...common, datasource: source.getRef(), query: each.query, allValue: each.allValue, defaultToAll: each.includeAll, ...(each.includeAll ? {} : { value: each.current.value, text: each.current.text }) });
    default:
      return new CustomVariable({ ...common, query: each.query, value: each.current?.value, text: each.current?.text });
  }
}

function panel(each: any) {
  const queries = new SceneQueryRunner({ datasource: source.getRef(), queries: each.targets ?? [], maxDataPoints: each.maxDataPoints, minInterval: each.interval });
  const data = each.transformations?.length ? new SceneDataTransformer({ $data: queries, transformations: each.transformations }) : queries;
  const ownTime = each.timeFrom && new SceneTimeRange({ from: each.timeFrom, to: 'now', timeZone: ZONE });
  const { x, y, w, h } = each.gridPos;
  return new SceneGridItem({
    x, y, width: w, height: h, isResizable: false, isDraggable: false,
    body: new VizPanel({ title: each.title, description: each.description, pluginId: each.type, options: each.options ?? {}, fieldConfig: each.fieldConfig, $data: data, $timeRange: ownTime || undefined }),
  });
}

function scene() {
  const children = dashboard.panels.map((each: any) =>
    each.type === 'row' ? new SceneGridRow({ title: each.title, y: each.gridPos.y, isCollapsible: false, children: [] }) : panel(each));
  return new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from: dashboard.time.from, to: dashboard.time.to, timeZone: ZONE }),
    $variables: new SceneVariableSet({ variables: dashboard.templating.list.map(variable) }),
    controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({})],
    body: new SceneGridLayout({ children, isLazy: false }),
  });
}

(async () => {
  start();
  await initPluginTranslations('look', []).catch((error) => console.warn('no translations', error));
  const drawn = scene();
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <h2 style={{ padding: '12px 16px 0', margin: 0 }}>{dashboard.title}</h2>
      <drawn.Component model={drawn} />
      <PortalContainer />
    </ThemeContext.Provider>
  );
})();
